//! When a hart is whose: always, or in windows of a frame that comes again and again.
//!
//! Source: Mok, Feng and Chen, "Resource partition for real-time systems" (RTAS 2001): the least that windows supply in any interval of a length. Lipari and Bini,
//! "Resource partitioning among real-time applications" (ECRTS 2003): the same from below, as a rate and a delay.

/// A piece of a frame, in the unit of the loads, nanoseconds in the rest of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From the frame's begin.
    pub start: u64,
    /// Not 0.
    pub length: u64,
}

/// What of a hart there is for a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supply {
    /// Not 0.
    frame: u64,
    /// In the order of time, without overlap, within the frame; at least one.
    windows: Vec<Window>,
    /// How long all of them are together.
    in_frame: u64,
}

impl Supply {
    /// The whole hart.
    #[must_use]
    pub fn always() -> Self {
        Self { frame: 1, windows: vec![Window { start: 0, length: 1 }], in_frame: 1 }
    }

    /// These windows, in the order of time, of a frame of this length. `None` if they are none, overlap, or don't fit.
    #[must_use]
    pub fn of(frame: u64, windows: Vec<Window>) -> Option<Self> {
        let mut end = 0;
        for window in &windows {
            if window.start < end || window.length == 0 {
                return None;
            }
            end = window.start.checked_add(window.length)?;
        }
        let in_frame = windows.iter().map(|window| window.length).sum();
        (!windows.is_empty() && end <= frame).then_some(Self { frame, windows, in_frame })
    }

    /// How much work it is to find a [wait](Self::wait), in windows that are looked at.
    pub(crate) fn looks(&self) -> usize {
        self.windows.len().saturating_mul(self.windows.len())
    }

    /// A share of a hart that has so many parts, rounded down.
    pub(crate) fn share(&self, whole: u128) -> u128 {
        whole * u128::from(self.in_frame) / u128::from(self.frame)
    }

    /// How much of a frame it is there while not all of the others are, whose frames are as long and begin with its own.
    pub(crate) fn without(&self, others: &[Self]) -> u64 {
        let windows = core::iter::once(self).chain(others).flat_map(|supply| &supply.windows);
        let mut ends: Vec<u64> =
            windows.flat_map(|window| [window.start, window.start + window.length]).collect();
        ends.sort_unstable();
        // Between two of them nobody's window begins or ends.
        let is_without = |at| self.is_there(at) && !others.iter().all(|other| other.is_there(at));
        let pieces = ends.windows(2).filter(|piece| is_without(piece[0]));
        pieces.map(|piece| piece[1] - piece[0]).sum()
    }

    /// Is this moment of a frame in a window?
    fn is_there(&self, at: u64) -> bool {
        let begun = self.windows.partition_point(|window| window.start <= at);
        begun.checked_sub(1).is_some_and(|last| at - self.windows[last].start < self.windows[last].length)
    }

    /// How long it takes at most until there has been so much, from any time on.
    #[must_use]
    pub fn wait(&self, amount: u64) -> u64 {
        let Some(before) = amount.checked_sub(1) else { return 0 };
        let (frames, rest) = (before / self.in_frame, before % self.in_frame + 1);
        // The worst is to begin when a window has just ended.
        let longest = (0..self.windows.len()).map(|after| self.wait_behind(after, rest)).max();
        frames.saturating_mul(self.frame).saturating_add(longest.unwrap_or(u64::MAX))
    }

    /// The same from the end of a window on, for no more than there is in a frame.
    fn wait_behind(&self, window: usize, amount: u64) -> u64 {
        let mut left = amount;
        for (delay, next) in self.behind(window) {
            if left <= next.length {
                return delay.saturating_add(left);
            }
            left -= next.length;
        }
        u64::MAX
    }

    /// The windows behind one, in the order of time, that one the last: each with how long after the end of that one it begins.
    fn behind(&self, window: usize) -> impl Iterator<Item = (u64, Window)> {
        let Window { start, length } = self.windows[window];
        let end = start + length;
        let later = self.windows[window + 1..].iter().map(move |next| (next.start - end, *next));
        let again = self.windows[..=window].iter().map(move |next| (next.start + (self.frame - end), *next));
        later.chain(again)
    }

    /// From any time on, there is at least what comes at its [share](Self::share) if that begins only so much later. Rounded up.
    pub(crate) fn delay(&self) -> u64 {
        let late = |after: usize| {
            let mut had = 0;
            let delays = self.behind(after).map(move |(delay, next)| {
                let steadily = u128::from(had) * u128::from(self.frame) / u128::from(self.in_frame);
                had += next.length;
                u128::from(delay).saturating_sub(steadily)
            });
            delays.max().unwrap_or_default()
        };
        let longest = (0..self.windows.len()).map(late).max().unwrap_or_default();
        u64::try_from(longest).unwrap_or(u64::MAX)
    }
}
