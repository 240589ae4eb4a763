//! Every interleaving of a writer and the reader, under loom's weak memory.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-console --lib --release`
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::*;

/// A source to which `pieces` are written, and its reader, which stops looking when it finds nothing, and looks again only if it is told to.
fn all_is_sent(before: &'static str, pieces: &'static [&'static str], expected: &'static str) {
    loom::model(move || {
        let source = Arc::new(Source::new("a", 8));
        let told = Arc::new(AtomicBool::new(false));
        let mut multiplexer = Multiplexer::<1>::new();
        let mut sent = Vec::new();
        // Patience 0: what is there is sent.
        let mut look = |source: &Source| {
            let mut piece = [0; 8];
            loop {
                let (length, rest) = multiplexer.fill(&[source], 1, Some(0), &mut piece);
                sent.extend_from_slice(&piece[..length]);
                if rest == Rest::Nothing {
                    return;
                }
            }
        };
        before.bytes().for_each(|byte| _ = source.push(byte));
        let writer = thread::spawn({
            let (source, told) = (source.clone(), told.clone());
            move || {
                for piece in pieces {
                    if source.append(piece.bytes()).1 {
                        told.store(true, Ordering::Release);
                    }
                }
            }
        });
        look(&source);
        writer.join().unwrap();
        if told.load(Ordering::Acquire) {
            look(&source);
        }
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
    });
}

/// What has no line end is sent as well: the reader has taken all that it found, and finds the rest, or is told.
///
/// Fails without the fence in `Source::append` or the one in `Source::take`, and if `head` is published relaxed.
#[test]
fn no_byte_is_forgotten() {
    all_is_sent("x", &["y", "z"], "a| xyz");
}

/// A line's end that is counted is there. Fails if `append` counts it first.
#[test]
fn a_whole_line_is_sent_whole() {
    all_is_sent("@", &["y", "\n"], "a| @y\n");
}

/// A line's end that is there may not have been counted yet. Fails if the reader takes any difference of the counts for a line.
#[test]
fn a_line_s_end_is_not_another_s() {
    all_is_sent("x", &["\n@"], "a| x\n");
}

/// A full ring loses what finds no room, nothing else, and no byte is read before it is written or written before it is read.
///
/// Fails if `tail` is published relaxed.
#[test]
fn a_full_ring_keeps_its_bytes() {
    loom::model(|| {
        let source = Arc::new(Source::new("a", 2));
        source.push(b'1');
        source.push(b'2');
        let writer = thread::spawn({
            let source = source.clone();
            move || _ = source.push(b'3')
        });
        let mut bytes = [0; 3];
        let (taken, _) = source.take(&mut bytes);
        writer.join().unwrap();
        let (rest, _) = source.take(&mut bytes[taken..]);
        assert_eq!(&bytes[..taken + rest], &b"123"[..taken + rest]);
        assert_eq!(taken + rest + source.lost() as usize, 3);
    });
}

/// The guest's port has room for one byte. All that is typed arrives, as the guest that reads sees that something waits.
///
/// Fails if `pass_on` says nothing of what it leaves.
#[test]
fn all_that_is_typed_arrives() {
    loom::model(|| {
        let port = Arc::new(Mutex::new(None));
        let waits = Arc::new(InputWaits::new());
        let told = Arc::new(AtomicBool::new(false));
        let mut input = Input::<4>::new();
        let feed = |input: &mut Input<4>| {
            let mut port = port.lock().unwrap();
            input.pass_on(&waits, |byte| port.is_none() && port.replace(byte).is_none());
        };
        input.push(1);
        input.push(2);
        feed(&mut input);
        let guest = thread::spawn({
            let (port, waits, told) = (port.clone(), waits.clone(), told.clone());
            move || {
                let read = port.lock().unwrap().take();
                if waits.is_set() {
                    told.store(true, Ordering::Relaxed);
                }
                read
            }
        });
        // Somebody types more.
        input.push(3);
        feed(&mut input);
        assert_eq!(guest.join().unwrap(), Some(1));
        if told.load(Ordering::Relaxed) {
            feed(&mut input);
        }
        assert_eq!(port.lock().unwrap().take(), Some(2), "the guest has made room");
    });
}
