//! The PLIC under every interleaving and every memory order that two or three cores can produce.
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-devices --test plic_races --release`
#![cfg(loom)]

use ainori_devices::plic::Plic;
use loom::{sync::Arc, thread};

const PRIORITY: u64 = 4;
const ENABLE: [u64; 2] = [0x2080, 0x2180];
const CLAIM_COMPLETE: [u64; 2] = [0x20_1004, 0x20_3004];
const SOURCE: u32 = 1;

/// A PLIC with source 1 at priority 1 and enabled for both vCPUs' contexts, 1 and 3.
fn listening() -> Plic {
    let plic = Plic::new();
    plic.write(PRIORITY, 4, 1);
    for offset in ENABLE {
        plic.write(offset, 4, 1 << SOURCE);
    }
    plic
}

fn claim(plic: &Plic, context: usize) -> bool {
    plic.read(CLAIM_COMPLETE[context], 4).0 == SOURCE
}

/// Completes in `context`. Returns the vCPUs to look at.
fn complete(plic: &Plic, context: usize) -> u64 {
    let effects = plic.write(CLAIM_COMPLETE[context], 4, SOURCE);
    assert_eq!(effects.completed, Some(SOURCE));
    effects.harts
}

/// Runs `other` on a second core while `here` runs on this one.
fn both<A: 'static, B>(
    plic: &Arc<Plic>,
    other: impl FnOnce(&Plic) -> A + 'static,
    here: impl FnOnce(&Plic) -> B,
) -> (A, B) {
    let shared = plic.clone();
    let thread = thread::spawn(move || other(&shared));
    let here = here(plic);
    (thread.join().unwrap(), here)
}

#[test]
fn one_of_two_claims_wins() {
    loom::model(|| {
        let plic = Arc::new(listening());
        plic.raise(SOURCE);
        let (first, second) = both(&plic, |plic| claim(plic, 0), |plic| claim(plic, 1));
        assert!(first ^ second);
    });
}

/// The board's interrupt is completed with it, and that one could come again before the second.
#[test]
fn one_of_two_completions_of_a_claim_completes_it() {
    loom::model(|| {
        let plic = Arc::new(listening());
        plic.raise(SOURCE);
        assert!(claim(&plic, 0));
        let completes = |context: usize| {
            move |plic: &Plic| plic.write(CLAIM_COMPLETE[context], 4, SOURCE).completed == Some(SOURCE)
        };
        let (first, second) = both(&plic, completes(0), completes(1));
        assert!(first ^ second);
    });
}

#[test]
fn raising_and_enabling_do_not_miss_one_another() {
    loom::model(|| {
        let plic = Arc::new(Plic::new());
        plic.write(PRIORITY, 4, 1);
        let (told, seen) = both(
            &plic,
            |plic| plic.raise(SOURCE) & 1 != 0,
            |plic| plic.write(ENABLE[0], 4, 1 << SOURCE).harts & 1 != 0 && plic.external_pending(1),
        );
        assert!(told || seen, "the raising core did not see the listener, nor the listener the request");
        assert!(plic.external_pending(1));
    });
}

#[test]
fn raising_and_lowering_the_threshold_do_not_miss_one_another() {
    const THRESHOLD: u64 = 0x20_1000;
    loom::model(|| {
        let plic = Arc::new(listening());
        plic.write(THRESHOLD, 4, 7);
        // The raising core looks by itself here. In the kernel the owner of context 0 does, which only comes later.
        let (told, seen) = both(
            &plic,
            |plic| plic.raise(SOURCE) & 1 != 0 && plic.external_pending(1),
            |plic| plic.write(THRESHOLD, 4, 0).harts & 1 != 0 && plic.external_pending(1),
        );
        assert!(told || seen);
    });
}

#[test]
fn a_line_that_rises_during_completion_is_not_lost() {
    loom::model(|| {
        let plic = Arc::new(listening());
        plic.raise(SOURCE);
        assert!(claim(&plic, 0));
        plic.lower(SOURCE);
        let (raised, completed) = both(&plic, |plic| plic.raise(SOURCE), |plic| complete(plic, 0));
        assert!(plic.external_pending(1));
        assert_eq!(raised | completed, 0b11, "nobody was told of the new request");
    });
}

#[test]
fn a_late_claim_neither_steals_nor_loses_the_next_request() {
    loom::model(|| {
        let plic = Arc::new(listening());
        plic.raise(SOURCE);
        // One core serves the whole interrupt and the line rises again, while the other one claims.
        let (first, second) = both(
            &plic,
            |plic| {
                let won = claim(plic, 0);
                if won {
                    plic.lower(SOURCE);
                    complete(plic, 0);
                    plic.raise(SOURCE);
                }
                won
            },
            |plic| claim(plic, 1),
        );
        assert!(first || second);
        if second {
            assert!(!plic.external_pending(1), "a source in service must not ask again");
            complete(&plic, 1);
        }
        assert!(
            plic.external_pending(1) && plic.external_pending(3),
            "the line is high and nobody serves it"
        );
    });
}

#[test]
fn a_late_claim_hides_the_next_request_from_nobody_for_good() {
    loom::model(|| {
        let plic = Arc::new(listening());
        plic.raise(SOURCE);
        let (seen, (claimed, effects)) = both(
            &plic,
            |plic| {
                if !claim(plic, 0) {
                    return false;
                }
                plic.lower(SOURCE);
                complete(plic, 0);
                let told = plic.raise(SOURCE) & 1 != 0;
                // The request stays, if it was made before the other core's claim; that core must not go by the level.
                plic.lower(SOURCE);
                told && plic.external_pending(1)
            },
            |plic| plic.read(CLAIM_COMPLETE[1], 4),
        );
        if claimed == 0 && plic.external_pending(1) {
            // Context 0 saw the request at once, or the core whose late claim hid it tells context 0 to look again.
            assert!(seen || effects.harts & 1 != 0);
        }
    });
}

/// A request that another controller has made while a core claims late: it stays, and somebody is told. (A line that goes high and low again is lost then.)
#[test]
fn a_late_claim_loses_no_request() {
    loom::model(|| {
        let plic = Arc::new(listening());
        plic.request(SOURCE);
        let (told, (claimed, effects)) = both(
            &plic,
            |plic| {
                if !claim(plic, 0) {
                    return None;
                }
                complete(plic, 0);
                Some(plic.request(SOURCE))
            },
            |plic| plic.read(CLAIM_COMPLETE[1], 4),
        );
        if let Some(told) = told
            && claimed == 0
        {
            assert!(plic.external_pending(1) && plic.external_pending(3), "the request is lost");
            assert_ne!(told | effects.harts, 0, "nobody was told of the request");
        }
    });
}
