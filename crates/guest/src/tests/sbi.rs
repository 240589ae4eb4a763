//! Calls that are right or wrong in a way that only the guest's state tells.
use ainori_lifecycle::{Cause, HartState};
use ainori_sbi::{AINORI, Call, DBCN, Error, HSM, SRST, SUSP, ainori, decode};

use super::host::{MEMORY, SIZE, TestHost, Wish};
use crate::sbi::{MOST_PRINTED, carry_out};

/// A call of the host's present caller, decoded and carried out. `None` if it has to ask again.
fn call(host: &mut TestHost, extension: u64, function: u64, a: [u64; 5]) -> Option<ainori_sbi::Result<u64>> {
    match decode(&Call { extension, function, a }, host.all()) {
        Ok(request) => carry_out(host, request),
        Err(error) => Some(Err(error)),
    }
}

fn status(host: &mut TestHost, hart: u64) -> u64 {
    call(host, HSM, 2, [hart, 0, 0, 0, 0]).unwrap().unwrap()
}

#[test]
fn a_hart_lives_as_the_specification_has_it() {
    let mut host = TestHost::new(3);
    let start = |host: &mut TestHost, address| call(host, HSM, 0, [1, address, 7, 0, 0]).unwrap();
    for wrong in [0, MEMORY - 2, MEMORY + SIZE, MEMORY + SIZE - 1, u64::MAX] {
        assert_eq!(start(&mut host, wrong), Err(Error::InvalidAddress), "{wrong:#x}");
    }
    assert_eq!((status(&mut host, 1), host.take()), (HartState::Stopped as u64, vec![]));
    assert_eq!(start(&mut host, MEMORY + SIZE - 2), Ok(0));
    assert_eq!(host.take(), [Wish::Start(1)]);
    assert_eq!(host.harts[1].start_arguments(), (MEMORY + SIZE - 2, 7));
    assert_eq!(status(&mut host, 1), HartState::StartPending as u64);
    assert_eq!(start(&mut host, MEMORY), Err(Error::AlreadyAvailable));
    assert_eq!(host.harts[1].start_arguments().0, MEMORY + SIZE - 2, "who is refused changes nothing");
    host.start_those_who_are_asked();
    assert_eq!(status(&mut host, 1), HartState::Started as u64);
    // The last to stop ends the guest.
    assert_eq!(call(&mut host, HSM, 1, [0; 5]), Some(Ok(0)));
    assert_eq!((host.take(), status(&mut host, 0)), (vec![], HartState::Stopped as u64));
    host.caller = 1;
    call(&mut host, HSM, 1, [0; 5]);
    assert_eq!(host.take(), [Wish::StopGuest("all-harts-stopped", Cause::Failure)]);
}

#[test]
fn who_is_suspended_goes_on_where_it_has_asked_to() {
    let mut host = TestHost::new(2);
    let suspend = |host: &mut TestHost, address| call(host, HSM, 3, [0x8000_0000, address, 7, 0, 0]);
    for wrong in [0, MEMORY - 2, MEMORY + SIZE - 1, u64::MAX] {
        assert_eq!(suspend(&mut host, wrong), Some(Err(Error::InvalidAddress)), "{wrong:#x}");
    }
    assert_eq!(host.take(), []);
    assert_eq!(suspend(&mut host, MEMORY + 8), None, "its call has no answer");
    // In this order: an interrupt that is there already doesn't let it sleep, but go on there.
    assert_eq!(host.take(), [Wish::ResumeAt(MEMORY + 8, 7), Wish::Suspend]);
}

#[test]
fn the_machine_is_suspended_if_all_others_are_stopped() {
    let mut host = TestHost::new(3);
    let sleep = |host: &mut TestHost| call(host, SUSP, 0, [0, MEMORY, 7, 0, 0]);
    let asleep = [Wish::ResumeAt(MEMORY, 7), Wish::Suspend];
    assert_eq!((sleep(&mut host), host.take()), (None, asleep.to_vec()));
    assert!(host.harts[2].ask_start(MEMORY, 0));
    assert_eq!(sleep(&mut host), Some(Err(Error::Denied)), "one is about to start");
    host.start_those_who_are_asked();
    assert_eq!((sleep(&mut host), host.take()), (Some(Err(Error::Denied)), vec![]));
    host.caller = 2;
    assert_eq!(sleep(&mut host), Some(Err(Error::Denied)), "the first one runs");
    assert_eq!(call(&mut host, SUSP, 0, [0, 5, 7, 0, 0]), Some(Err(Error::InvalidAddress)));
}

#[test]
fn a_reset_ends_the_guest_for_its_reason() {
    for (kind, reason, told, cause) in [
        (0, 0, "shutdown", Cause::Shutdown),
        (1, 0, "reboot", Cause::Reboot),
        (2, 0, "reboot", Cause::Reboot),
        (0, 1, "failure", Cause::Failure),
    ] {
        let mut host = TestHost::new(1);
        call(&mut host, SRST, 0, [kind, reason, 0, 0, 0]);
        assert_eq!(host.take(), [Wish::StopGuest(told, cause)]);
    }
}

#[test]
fn the_console_moves_a_piece_of_what_is_all_there() {
    let mut host = TestHost::new(1);
    host.memory[4000..4040].copy_from_slice(b"0123456789abcdefghijklmnopqrstuvwxyz....");
    let write = |host: &mut TestHost, size, from| {
        call(host, DBCN, 0, [size, from, 0, 0, 0]).expect("the port is free")
    };
    for (size, from) in [(1, 0), (97, MEMORY + 4000), (u64::MAX, MEMORY), (1, MEMORY + SIZE), (2, u64::MAX)] {
        assert_eq!(write(&mut host, size, from), Err(Error::InvalidParameter), "{size} from {from:#x}");
    }
    assert_eq!(write(&mut host, 40, MEMORY + 4000), Ok(MOST_PRINTED));
    assert_eq!(write(&mut host, 0, MEMORY + SIZE), Ok(0), "nothing is all there everywhere");
    assert_eq!(write(&mut host, 1, MEMORY + SIZE - 1), Ok(1), "the last byte");
    host.take();
    let mut sent = Vec::new();
    while let piece = host.send()
        && !piece.is_empty()
    {
        sent.extend(piece);
    }
    assert_eq!(String::from_utf8(sent).unwrap(), "guest| 0123456789abcdef\0");

    // What was typed comes by the port's FIFO.
    host.devices.with_port(|port| b"hello".iter().all(|byte| port.receive(*byte))).unwrap();
    host.input_waits = true;
    assert_eq!(call(&mut host, DBCN, 1, [3, MEMORY + 1, 0, 0, 0]), Some(Ok(3)));
    assert_eq!(host.take(), [Wish::WakeConsole]);
    assert_eq!(host.memory[..5], *b"\0hel\0");
    assert_eq!(call(&mut host, DBCN, 1, [4, MEMORY + SIZE - 3, 0, 0, 0]), Some(Err(Error::InvalidParameter)));
    assert_eq!(call(&mut host, 2, 0, [0; 5]), Some(Ok(u64::from(b'l'))), "legacy");
    assert_eq!(call(&mut host, DBCN, 1, [100, MEMORY, 0, 0, 0]), Some(Ok(1)));
    assert_eq!(call(&mut host, 2, 0, [0; 5]), Some(Ok(u64::MAX)), "nothing is left");
}

/// Who finds the port taken asks again: nothing was done.
#[test]
fn a_port_that_is_taken_is_not_waited_for() {
    let mut host = TestHost::new(1);
    let devices = host.devices;
    devices.with_port(|_| {
        for (function, a) in
            [(0, [1, MEMORY, 0, 0, 0]), (1, [1, MEMORY, 0, 0, 0]), (2, [b'x'.into(), 0, 0, 0, 0])]
        {
            assert_eq!(call(&mut host, DBCN, function, a), None);
        }
        assert_eq!(call(&mut host, 2, 0, [0; 5]), None, "legacy");
    });
    assert!(host.take().is_empty() && devices.serial.output.is_empty());
}

#[test]
fn a_full_ring_is_told_and_a_single_byte_waits() {
    let mut host = TestHost::new(1);
    while call(&mut host, DBCN, 0, [16, MEMORY, 0, 0, 0]) != Some(Ok(0)) {}
    assert_eq!(host.take().last(), Some(&Wish::RelieveConsole));
    assert_eq!(call(&mut host, DBCN, 2, [0; 5]), None);
    assert_eq!(host.take(), [Wish::RelieveConsole]);
}

#[test]
fn our_own_calls_reach_the_host() {
    let mut host = TestHost::new(1);
    for (function, argument, wish) in [
        (ainori::YIELD, 0, Wish::Yield),
        (ainori::MARK, 5, Wish::Mark(5)),
        (ainori::LOCK_TAKEN, 0, Wish::Lock(true)),
        (ainori::LOCK_RELEASED, 0, Wish::Lock(false)),
        (ainori::GIVE_WAY, 0, Wish::Suspend),
    ] {
        assert_eq!(call(&mut host, AINORI, function, [argument, 0, 0, 0, 0]), Some(Ok(0)));
        assert_eq!(host.take(), [wish]);
    }
}
