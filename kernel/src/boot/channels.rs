//! The channels between guests: memory that both see, and their ends.
use alloc::{boxed::Box, vec::Vec};

use ainori_board::Range;
use ainori_devices::bus::channel_memory;
use ainori_devices::channel::Endpoint;
use ainori_limits::PAGE;
use ainori_manifest::config::{GUEST_MEMORY_ALIGN, System};
use ainori_sched::{Policy, VcpuId};

use super::sharing::cores_of;
use crate::arch::clear::Clearer;
use crate::cpu::order::Order;
use crate::guest::space::Space;
use crate::guest::vcpu::Vcpu;
use crate::guest::{Guest, Peer};
use crate::memory;
use crate::panic::refuse;

/// The system's channels, with their memory.
pub struct Channels<'a> {
    system: &'a System,
    memory: Vec<Range>,
}

impl<'a> Channels<'a> {
    /// Takes their memory, and clears it: afterwards it is the guests' for the whole run, and nobody clears it again.
    pub fn new(system: &'a System, clearer: &Clearer) -> Self {
        let take = |size: u64| {
            // A large leaf can map what is large enough, as it lies in a guest.
            let align = if size < GUEST_MEMORY_ALIGN { PAGE } else { GUEST_MEMORY_ALIGN };
            let Some(start) = memory::take_for_guest(size, align) else {
                refuse(format_args!("not enough memory for a channel ({} KiB)", size >> 10))
            };
            // SAFETY: the allocator has just taken it for this channel; no guest runs yet.
            unsafe { clearer.clear(start, size) };
            Range { start: start.0, end: start.0 + size }
        };
        Self { system, memory: system.channels.iter().map(|channel| take(channel.size)).collect() }
    }

    /// Lets a guest see the memory of its channels. Its ends, by their slots, and whom it reaches by them. Allocates: only at boot.
    pub fn give(&self, guest: usize, space: &mut Space) -> (&'static [Endpoint], Vec<Peer>) {
        let (mut ends, mut peers) = (Vec::new(), Vec::new());
        for (slot, (number, end)) in self.system.channels_of(guest).enumerate() {
            let channel = &self.system.channels[number];
            if !space.add_shared(channel_memory(slot), self.memory[number]) {
                refuse(format_args!("guest {guest} has something else where its channels are"))
            }
            let other = channel.ends[end ^ 1];
            let slot_there =
                self.system.channels_of(other as usize).take_while(|(one, _)| *one != number).count();
            ends.push(Endpoint::new(number as u16, end as u32, channel.size));
            // `set_turns` knows.
            peers.push(Peer { guest: other as u8, slot: slot_there as u8, has_turns: true });
        }
        (Box::leak(ends.into_boxed_slice()), peers)
    }
}

/// Finds out whose bells [have turns](Peer::has_turns).
pub fn set_turns(guests: &mut [Guest], vcpus: &[Vcpu], orders: &[Order], policy: &Policy) {
    for guest in guests {
        let own = VcpuId(guest.vcpus().start);
        let reach = vcpus.get(usize::from(own.0)).map_or(0, |vcpu| cores_of(vcpu, policy));
        for peer in &mut guest.peers {
            peer.has_turns = !policy.has_windows()
                && orders.iter().enumerate().any(|(core, order)| {
                    let least = if reach >> core & 1 != 0 { order.rank(own).level } else { 0 };
                    let mut all = (0..).map(VcpuId).zip(vcpus).filter(|(_, vcpu)| vcpu.guest == peer.guest);
                    all.any(|(id, vcpu)| {
                        cores_of(vcpu, policy) >> core & 1 != 0 && order.rank(id).level >= least
                    })
                });
        }
    }
}
