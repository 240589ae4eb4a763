//! How late an RTOS may be, with the harts that tests are run with.
use super::{HANDLER_NS, TASK_NS};
use ainori::report::GuestReport;

/// What holds for delays that an RTOS measures itself, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// Most of what is usual.
    pub usual: u64,
    /// Most at all. It is more where what is touched for the first time takes longer.
    pub most: u64,
}

/// The same for all that it measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Punctuality {
    /// From a period's deadline to the first statement of its task.
    pub task: Lateness,
    /// The same to the first statement of its tick's handler.
    pub handler: Lateness,
}

/// With H nothing of an RTOS traps on that way, and what it touches for the first time is there.
const WITH_H: Punctuality = Punctuality {
    task: Lateness { usual: TASK_NS, most: TASK_NS },
    handler: Lateness { usual: HANDLER_NS, most: HANDLER_NS },
};

/// A page that is touched for the first time since the pages around it have become text is a page fault of the shadow, and an instruction that is executed for the first time traps by the
/// firmware: 5.0 to 5.9 us each.
const FIRST_USE: u64 = 6_000;

/// Without H its handler is entered by the hypervisor, and the privileged instructions between that and its task are breakpoints.
///
/// What measures is among what is touched for the first time: of a run's periods a few have one such use, before the handler or behind it, and one may have two.
const WITHOUT_H: Punctuality = Punctuality {
    task: Lateness { usual: 5_500, most: 5_500 + 2 * FIRST_USE },
    handler: Lateness { usual: 2_500, most: 2_500 + FIRST_USE },
};

/// With fewer samples than these the 99th percentile may be one of first uses.
const MANY: u64 = 1_000;

impl Punctuality {
    /// Of a guest, by the hypervisor that has run it: the one for harts without H counts what its fast path does.
    pub fn of(guest: &GuestReport) -> Self {
        if guest.vcpus.iter().any(|vcpu| vcpu.fast_path.is_some()) { WITHOUT_H } else { WITH_H }
    }
}

impl Lateness {
    /// The greatest of so many delays, whose numbers these are (`max`, `p99` and so on). It is an error if this, or what is usual, is above what may be. `None` if there is no such number.
    pub fn latest(self, samples: u64, number: impl Fn(&str) -> Option<u64>) -> Option<Result<u64, u64>> {
        let latest = number("max")?;
        let usual = match () {
            () if self.most == self.usual => latest,
            () if samples < MANY => number("mean")?,
            () => number("p99")?,
        };
        Some(if latest <= self.most && usual <= self.usual { Ok(latest) } else { Err(latest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of delays of which the mean is `usual`, one in 100 is `seldom`, and one `latest`.
    fn told(usual: u64, seldom: u64, latest: u64) -> impl Fn(&str) -> Option<u64> {
        move |part| {
            [("mean", usual), ("p99", seldom), ("max", latest)]
                .into_iter()
                .find(|it| it.0 == part)
                .map(|it| it.1)
        }
    }

    #[test]
    fn first_uses_are_few_and_no_longer_than_they_may_be() {
        let Lateness { usual, most } = WITHOUT_H.task;
        for (samples, told, good) in [
            (1_000, told(usual, usual, most), true),
            (1_000, told(usual, usual, most + 100), false),
            (1_000, told(usual, usual + 100, most), false),
            // One of few is as good as one in 100.
            (999, told(usual, most, most), true),
            (999, told(usual + 100, most, most), false),
        ] {
            assert_eq!(WITHOUT_H.task.latest(samples, told).map(|latest| latest.is_ok()), Some(good));
        }
    }

    #[test]
    fn with_h_each_sample_counts() {
        assert_eq!(WITH_H.task.latest(1000, told(1, 1, 2_500)), Some(Ok(2_500)));
        assert_eq!(WITH_H.task.latest(1000, told(1, 1, 2_600)), Some(Err(2_600)));
        assert_eq!(WITH_H.task.latest(1000, |_| None), None);
    }
}
