//! Turns that several cores want.

use loom::sync::Arc;
use loom::thread;

use crate::Pace;

/// Two cores want two turns each, at times of their own. No two turns overlap, each is behind the last one of its core, and none is left out.
///
/// Fails if a turn is taken by a load and a store.
#[test]
fn each_turn_is_one_cores() {
    const LENGTH: u64 = 25;
    loom::model(|| {
        let pace = Arc::new(Pace::new());
        let other = thread::spawn({
            let pace = pace.clone();
            move || [pace.take_turn(10, LENGTH), pace.take_turn(12, LENGTH)]
        });
        let own = [pace.take_turn(11, LENGTH), pace.take_turn(11, LENGTH)];
        let other = other.join().unwrap();
        assert!(own[0] < own[1] && other[0] < other[1]);
        let mut all = [own, other].concat();
        all.sort_unstable();
        assert!(all[0] == 10 || all[0] == 11);
        assert!(all.windows(2).all(|two| two[1] == two[0] + LENGTH), "{all:?}");
    });
}
