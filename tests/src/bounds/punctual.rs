//! How late an RTOS may be, with the harts that tests are run with.
use super::{HANDLER_NS, TASK_NS};

/// What holds for the delays that an RTOS measures itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Punctuality {
    /// Most nanoseconds from a period's deadline to the first statement of its task.
    pub task_ns: u64,
    /// The same to the first statement of its tick's handler.
    pub handler_ns: u64,
    /// So much more at most where it touches something for the first time.
    pub first_uses_ns: u64,
}

/// With H nothing of an RTOS traps on that way, and what it touches for the first time is there.
const WITH_H: Punctuality = Punctuality { task_ns: TASK_NS, handler_ns: HANDLER_NS, first_uses_ns: 0 };

/// Without H its handler is entered by the hypervisor, and the privileged instructions between that and its task are breakpoints.
///
/// A page that it touches for the first time since the pages around it have become text is a page fault of the shadow, and an instruction that it executes for the first time traps by the
/// firmware: 5.0 to 5.9 us each. What measures is among what is touched: of a run's periods a few have one of these, and one may have two.
const WITHOUT_H: Punctuality = Punctuality { task_ns: 5_500, handler_ns: 2_500, first_uses_ns: 12_000 };

/// With fewer samples than these the 99th percentile may be one of first uses.
const MANY: u64 = 1_000;

impl Punctuality {
    /// Of an RTOS on harts that lack H, or have it.
    pub const fn of(lacks_h: bool) -> Self {
        if lacks_h { WITHOUT_H } else { WITH_H }
    }

    /// The greatest of so many delays, whose numbers these are (`max`, `p99` and so on, in nanoseconds). None is to be above `most` but for first uses: else, or if what is usual is above it, that
    /// is an error. `None` if there is no such number.
    pub fn latest(
        self,
        most: u64,
        samples: u64,
        number: impl Fn(&str) -> Option<u64>,
    ) -> Option<Result<u64, u64>> {
        let latest = number("max")?;
        let usual = match () {
            () if self.first_uses_ns == 0 => latest,
            () if samples < MANY => number("mean")?,
            () => number("p99")?,
        };
        let is_good = latest <= most + self.first_uses_ns && usual <= most;
        Some(if is_good { Ok(latest) } else { Err(latest) })
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
        let bounds = Punctuality::of(true);
        let (most, first) = (bounds.task_ns, bounds.task_ns + bounds.first_uses_ns);
        for (samples, told, good) in [
            (1_000, told(most, most, first), true),
            (1_000, told(most, most, first + 100), false),
            (1_000, told(most, most + 100, first), false),
            // One of few is as good as one in 100.
            (999, told(most, first, first), true),
            (999, told(most + 100, first, first), false),
        ] {
            assert_eq!(bounds.latest(most, samples, told).map(|latest| latest.is_ok()), Some(good));
        }
    }

    #[test]
    fn with_h_each_sample_counts() {
        let bounds = Punctuality::of(false);
        assert_eq!(bounds.latest(2_500, 1000, told(1, 1, 2_500)), Some(Ok(2_500)));
        assert_eq!(bounds.latest(2_500, 1000, told(1, 1, 2_600)), Some(Err(2_600)));
        assert_eq!(bounds.latest(2_500, 1000, |_| None), None);
    }
}
