//! A watchdog: who doesn't write to it in time is taken to hang. That of Allwinner's A31 (`allwinner,sun6i-a31-wdt` in the device tree; its user manual,
//! "Timer", registers WDOG0_CTRL, _CFG and _MODE), for which Linux has a driver on RISC-V, `sunxi_wdt`.
//!
//! It differs in one thing: it runs when a life of its guest begins, with an interval of the system's choice, so that a guest is watched that hangs before
//! its driver is there. From when the guest first writes WDOG0_MODE on, it is as the guest says: with another interval, or off.
use crate::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A deadline that there is none of.
pub const NEVER: u64 = u64::MAX;

// Registers.
const CONTROL: u64 = 0x10;
const CONFIG: u64 = 0x14;
const MODE: u64 = 0x18;

/// What restarts the interval, written to CONTROL: a bit with a key above it.
const RESTART: u32 = 0x0a57 << 1 | 1;
/// CONFIG: it resets the machine. (It could be an interrupt, which this one doesn't make.)
const RESETS: u32 = 1;
/// MODE: it is on.
const ENABLED: u32 = 1;
const INTERVAL_SHIFT: u32 = 4;
const MODE_BITS: u32 = ENABLED | 0xf << INTERVAL_SHIFT;
/// By the field of MODE: the interval in half seconds. Of what the manual leaves out the longest one is taken.
const INTERVALS: [u64; 16] = [1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 32, 32, 32, 32];

/// A guest's watchdog. All of its vCPUs may write at once, while another core looks whether it is due.
pub struct Watchdog {
    /// The interval of the system's choice, in ticks of `time`.
    first: u64,
    /// Ticks of half a second.
    half_second: u64,
    /// When it is due, in ticks of `time`.
    deadline: AtomicU64,
    /// As the guest has written it.
    mode: AtomicU32,
    /// The guest has written that in this life.
    is_guests: AtomicBool,
    /// It was due in this life.
    has_expired: AtomicBool,
}

impl Watchdog {
    /// One that is off until a life [begins](Self::begin). `interval`: for how long a guest may be silent that says nothing else, in ticks of `time`, of
    /// which a second has `hz`.
    #[must_use]
    pub fn new(interval: u64, hz: u64) -> Self {
        Self {
            first: interval,
            half_second: hz / 2,
            deadline: AtomicU64::new(NEVER),
            mode: AtomicU32::new(0),
            is_guests: AtomicBool::new(false),
            has_expired: AtomicBool::new(false),
        }
    }

    /// A life of its guest begins. No vCPU of that runs yet.
    pub fn begin(&self, now: u64) {
        self.mode.store(0, Ordering::Relaxed);
        self.is_guests.store(false, Ordering::Relaxed);
        self.has_expired.store(false, Ordering::Relaxed);
        self.deadline.store(now.saturating_add(self.first), Ordering::Relaxed);
    }

    /// When it is due, in ticks of `time`; [`NEVER`] if it is off. By now that may have changed, mostly to something later.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    /// It was due, and its guest has been stopped for that.
    pub fn expire(&self) {
        self.deadline.store(NEVER, Ordering::Relaxed);
        self.has_expired.store(true, Ordering::Release);
    }

    /// Has it been due in this life?
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.has_expired.load(Ordering::Acquire)
    }

    /// A load of a register.
    #[must_use]
    pub fn read(&self, offset: u64, width: u8) -> u32 {
        match (offset, width) {
            (CONFIG, 4) => RESETS,
            (MODE, 4) => self.mode.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// A store to a register, at time `now`. True if it may be due sooner than before: then whoever looks at it has to be told.
    #[must_use]
    pub fn write(&self, offset: u64, width: u8, value: u64, now: u64) -> bool {
        match (offset, width, value as u32) {
            (CONTROL, 4, RESTART) => self.restart(now),
            (MODE, 4, value) => {
                let mode = value & MODE_BITS;
                self.mode.store(mode, Ordering::Relaxed);
                self.is_guests.store(true, Ordering::Relaxed);
                self.restart(now)
            }
            _ => false,
        }
    }

    /// Its interval begins. True if it is due sooner than before.
    fn restart(&self, now: u64) -> bool {
        let mode = self.mode.load(Ordering::Relaxed);
        let interval = if !self.is_guests.load(Ordering::Relaxed) {
            self.first
        } else if mode & ENABLED == 0 {
            NEVER
        } else {
            let halves = INTERVALS.get((mode >> INTERVAL_SHIFT & 0xf) as usize).copied().unwrap_or(1);
            halves.saturating_mul(self.half_second)
        };
        let deadline = now.saturating_add(interval);
        self.deadline.swap(deadline, Ordering::Relaxed) > deadline
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const HZ: u64 = 1000;

    fn dog() -> Watchdog {
        let dog = Watchdog::new(70, HZ);
        assert_eq!(dog.deadline(), NEVER);
        dog.begin(100);
        dog
    }

    #[test]
    fn it_runs_from_the_begin_and_each_restart_puts_it_off() {
        let dog = dog();
        assert_eq!(dog.deadline(), 170);
        assert!(!dog.write(0x10, 4, 0x14af, 150));
        assert_eq!(dog.deadline(), 220);
        // Without the key, elsewhere, or in another width, nothing is done.
        for (offset, width, value) in
            [(0x10, 4, 1), (0x10, 4, 0x14ae), (0x10, 8, 0x14af), (0x11, 4, 0x14af), (0x14, 4, 2)]
        {
            assert!(!dog.write(offset, width, value, 200));
        }
        assert_eq!((dog.deadline(), dog.read(0x14, 4), dog.read(0x10, 4)), (220, 1, 0));
    }

    /// As Linux's driver does when it comes, when the device is opened, when it is fed, and when it is closed.
    #[test]
    fn a_driver_makes_it_its_own() {
        let dog = dog();
        assert!(!dog.write(0x18, 4, 0, 110), "off is no sooner");
        assert_eq!(dog.deadline(), NEVER);
        let start = |field: u64, now| {
            let _ = dog.write(0x18, 4, field << 4, now);
            let _ = dog.write(0x10, 4, 0x14af, now);
            let mode = u64::from(dog.read(0x18, 4));
            assert_eq!(mode, field << 4);
            assert!(dog.write(0x18, 4, mode | 1, now), "on is sooner");
            dog.deadline()
        };
        // [timeout in seconds] = field
        for (seconds, field) in
            [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (8, 7), (10, 8), (12, 9), (14, 10), (16, 11)]
        {
            assert_eq!(start(field, 1000), 1000 + seconds * HZ);
            assert_eq!(dog.read(0x18, 4), (field as u32) << 4 | 1);
            assert!(!dog.write(0x10, 4, 0x14af, 1100));
            assert_eq!(dog.deadline(), 1100 + seconds * HZ);
            assert!(!dog.write(0x18, 4, 0, 1200));
            assert_eq!(dog.deadline(), NEVER);
        }
        // Its way to restart the machine: half a second.
        assert_eq!(start(0, 0), HZ / 2);
    }

    #[test]
    fn each_life_begins_with_the_systems_interval() {
        let dog = dog();
        let _ = dog.write(0x18, 4, 1, 100);
        dog.expire();
        assert!(dog.has_expired() && dog.deadline() == NEVER);
        dog.begin(5000);
        assert_eq!((dog.has_expired(), dog.deadline(), dog.read(0x18, 4)), (false, 5070, 0));
        let _ = dog.write(0x10, 4, 0x14af, 5010);
        assert_eq!(dog.deadline(), 5080);
    }

    #[test]
    fn no_time_is_too_late_for_it() {
        let dog = Watchdog::new(u64::MAX, u64::MAX);
        dog.begin(u64::MAX - 5);
        assert!(!dog.write(0x18, 8, u64::MAX, 0));
        assert_eq!(dog.deadline(), NEVER);
        let _ = dog.write(0x18, 4, u64::MAX, u64::MAX - 1);
        assert_eq!((dog.deadline(), dog.read(0x18, 4)), (NEVER, 0xf1));
    }
}
