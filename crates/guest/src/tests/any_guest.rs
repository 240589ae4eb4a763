//! Whatever guests do: a fuzz target of all services at once.
use ainori_devices::bus::{DOORBELLS, GIVE_WAY, PCI_CONFIG, VIRTIO, channel_source, find, find_of_channels};
use ainori_lifecycle::HartState;
use ainori_sbi::{AINORI, BASE, Call, DBCN, HSM, IPI, RFENCE, Request, SRST, SUSP, TIME, decode};
use proptest::prelude::*;

use super::host::{MEMORY, SIZE, TestHost, Wish};
use crate::{bus, sbi};

const HARTS: usize = 3;

/// What a hart of the guest does, or somebody else does to it.
#[derive(Debug, Clone)]
enum Step {
    Call {
        extension: u64,
        function: u64,
        a: [u64; 5],
    },
    Load {
        address: u64,
        width: u8,
    },
    Store {
        address: u64,
        width: u8,
        value: u64,
    },
    /// Another hart goes on.
    Switch(usize),
    /// The console sends a piece.
    Send,
    /// Something is typed.
    Type(u8),
    /// The other end of a channel rings.
    Bell(usize),
    /// The harts that were asked to start do.
    Start,
}

fn any_argument() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..40,
        4 => MEMORY - 20..MEMORY + 40,
        4 => MEMORY + SIZE - 40..MEMORY + SIZE + 20,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

fn any_address() -> impl Strategy<Value = u64> {
    prop_oneof![
        0x10_0000u64..0x10_0008,
        0xc00_0000u64..0xc00_0100,
        0xc00_2000u64..0xc00_2400,
        0xc20_0000u64..0xc20_8000,
        0xc00_0000u64..0xc60_0000,
        0x1000_0000u64..0x1000_0010,
        GIVE_WAY.base..GIVE_WAY.base + 8,
        VIRTIO.base..VIRTIO.base + VIRTIO.size,
        PCI_CONFIG.base..PCI_CONFIG.base + 0x60,
        PCI_CONFIG.base..PCI_CONFIG.base + PCI_CONFIG.size,
        DOORBELLS.base..DOORBELLS.base + 0x10,
        DOORBELLS.base..DOORBELLS.base + DOORBELLS.size,
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let extension = prop_oneof![
        8 => proptest::sample::select(vec![BASE, TIME, IPI, RFENCE, HSM, HSM, SUSP, SRST, DBCN, DBCN, AINORI]),
        2 => 0u64..=9,
    ];
    let a = [any_argument(), any_argument(), any_argument(), any_argument(), any_argument()];
    let width = || proptest::sample::select(vec![1u8, 2, 4, 8]);
    prop_oneof![
        6 => (extension, 0u64..6, a).prop_map(|(extension, function, a)| Step::Call { extension, function, a }),
        3 => (any_address(), width()).prop_map(|(address, width)| Step::Load { address, width }),
        4 => (any_address(), width(), prop_oneof![0u64..256, any::<u64>()])
            .prop_map(|(address, width, value)| Step::Store { address, width, value }),
        2 => (0..HARTS).prop_map(Step::Switch),
        1 => Just(Step::Send),
        1 => any::<u8>().prop_map(Step::Type),
        1 => (0usize..2).prop_map(Step::Bell),
        1 => Just(Step::Start),
    ]
}

/// Does what a step says. Nobody has the port, so nothing has to be tried again but for want of room.
fn take(host: &mut TestHost, step: &Step) -> Result<(), TestCaseError> {
    match *step {
        Step::Call { extension, function, a } => {
            let before = host.harts.iter().map(|hart| hart.state()).collect::<Vec<_>>();
            let Ok(request) = decode(&Call { extension, function, a }, host.all()) else { return Ok(()) };
            let answer = sbi::carry_out(host, request);
            let failed = matches!(answer, Some(Err(_)));
            let wishes = host.take();
            prop_assert!(!failed || wishes.is_empty(), "{:?} failed and did {:?}", request, wishes);
            if let Request::SuspendAndResume { address, opaque, alone } = request
                && !failed
            {
                prop_assert_eq!(&wishes, &[Wish::ResumeAt(address, opaque), Wish::Suspend]);
                prop_assert!((MEMORY..=MEMORY + SIZE - 2).contains(&address));
                let running = before.iter().filter(|state| **state != HartState::Stopped).count();
                prop_assert!(!alone || running <= 1);
            } else {
                prop_assert!(
                    answer.is_some() || wishes == [Wish::RelieveConsole],
                    "{:?} is tried again",
                    request
                );
            }
            for wish in wishes {
                match wish {
                    Wish::SendIpi(harts) | Wish::RemoteFence(harts, _) => {
                        prop_assert_eq!(harts & !host.all(), 0)
                    }
                    Wish::Start(hart) => {
                        prop_assert_eq!(before[hart as usize], HartState::Stopped);
                        let (address, _) = host.harts[hart as usize].start_arguments();
                        prop_assert!((MEMORY..=MEMORY + SIZE - 2).contains(&address));
                    }
                    Wish::StopGuest("all-harts-stopped", _) => {
                        prop_assert!(host.harts.iter().all(|hart| hart.state() == HartState::Stopped));
                    }
                    _ => {}
                }
            }
            if extension == DBCN && function < 2 {
                let most = if function == 0 { sbi::MOST_PRINTED } else { sbi::MOST_READ }.min(a[0]);
                prop_assert!(
                    failed || answer.is_none_or(|moved| moved.is_ok_and(|moved| moved <= most)),
                    "too much was moved"
                );
            }
        }
        Step::Load { address, width } => {
            if let Some((part, offset)) = find_of_channels(address) {
                bus::load_of_channel(host, part, offset, width);
            }
            let Some((device, offset)) = find(&host.devices.irqchip, address) else { return Ok(()) };
            prop_assert!(bus::load(host, device, offset, width).is_some());
        }
        Step::Store { address, width, value } => {
            if let Some((part, offset)) = find_of_channels(address) {
                bus::store_of_channel(host, part, offset, width, value);
            }
            let Some((device, offset)) = find(&host.devices.irqchip, address) else { return Ok(()) };
            prop_assert!(bus::store(host, device, offset, width, value).is_some());
        }
        Step::Switch(hart) => host.caller = hart,
        Step::Send => {
            host.send();
        }
        Step::Type(byte) => {
            host.devices.with_port(|port| port.receive(byte));
        }
        Step::Bell(slot) => {
            if host.devices.channels[slot].ring() {
                host.looked_at |= host.devices.irqchip.pulse(channel_source(slot));
            }
        }
        Step::Start => host.start_those_who_are_asked(),
    }
    Ok(())
}

proptest! {
    /// Nothing panics; an error has no effect; whose external interrupt has changed is looked at; a started hart starts in the guest's memory; and
    /// memory changes only where something typed was asked for.
    #[test]
    fn services_hold_whatever_a_guest_does(steps in proptest::collection::vec(any_step(), 1..200)) {
        let mut host = TestHost::new(HARTS);
        for step in &steps {
            let pending = |host: &TestHost| (0..HARTS).filter(|hart| host.devices.irqchip.is_pending(*hart)).fold(0u64, |set, hart| set | 1 << hart);
            let (before, memory) = (pending(&host), host.memory.clone());
            host.looked_at = 0;
            host.take();
            take(&mut host, step)?;
            if !matches!(step, Step::Type(_)) {
                let changed = before ^ pending(&host);
                prop_assert_eq!(changed & !host.looked_at, 0, "{:?}", step);
            }
            let reads = matches!(step, Step::Call { extension: DBCN, function: 1, .. });
            prop_assert!(reads || memory == host.memory, "{:?}", step);
            prop_assert_eq!(host.devices.with_port(|_| ()).map(|((), _)| ()), Some(()), "the port was left taken");
        }
    }
}
