//! Who can meet whom on a core, and who goes first there: facts of a system that never change.
use core::array::from_fn;

use ainori_board::BoardIrqchip;
use ainori_manifest::config;
use ainori_sched::{Class, Policy, VcpuId, VcpuSet};

use crate::chip::irqchip::Levels;
use crate::cpu::ByVcpu;
use crate::cpu::order::{Order, Rank};
use crate::guest::vcpu::Vcpu;

/// What a policy may know of a guest's vCPUs on the core of this hart (board hart id).
#[inline(never)]
pub fn class_on(hart: u64, guest: u8, guests: &[config::Guest], policy: &Policy) -> Class {
    let config = &guests[usize::from(guest)];
    Class { priority: policy.priority(config.priority, config.priority_on(hart)), guest }
}

/// The cores that a vCPU can come to, a bit each.
pub fn cores_of(vcpu: &Vcpu, policy: &Policy) -> u64 {
    policy.reach(vcpu.home, vcpu.cores)
}

/// Can no other vCPU ever come to the core of this one, and this one to no other?
pub fn is_alone(vcpus: &[Vcpu], id: VcpuId, policy: &Policy) -> bool {
    let own = cores_of(&vcpus[usize::from(id.0)], policy);
    let others = vcpus.iter().enumerate().filter(|(index, _)| *index != usize::from(id.0));
    own.is_power_of_two() && others.map(|(_, other)| cores_of(other, policy)).all(|set| set & own == 0)
}

/// The order of all vCPUs on a core: `class` is what those of a guest are there, and `levels` those of the board's interrupts.
pub fn order(
    vcpus: &[Vcpu],
    class: &dyn Fn(u8) -> Class,
    levels: Levels,
    irqchip: Option<BoardIrqchip>,
    policy: &Policy,
) -> Order {
    let rank = |vcpu: &Vcpu| {
        let class = class(vcpu.guest);
        let level = policy.level(class);
        let irq_level = if policy.splits_levels() { levels.level(level) } else { 1 };
        let irq_threshold = irqchip.map_or(0, |chip| chip.threshold(irq_level - 1) as u16);
        Rank { class, level, threshold: policy.threshold(level), irq_threshold, ..Rank::default() }
    };
    let ranks = ByVcpu(from_fn(|index| vcpus.get(index).map_or(Rank::default(), rank)));
    let ids = (0..vcpus.len() as u8).map(VcpuId);
    let urgent: VcpuSet =
        ids.filter(|id| policy.takes_cores() && takes_cores(vcpus, *id, &ranks, policy)).collect();
    Order::new(ranks, urgent, vcpus.len())
}

/// Is a vCPU, with these ranks, above one with which it shares a core, at home or as a visitor?
#[inline(never)]
fn takes_cores(vcpus: &[Vcpu], id: VcpuId, ranks: &ByVcpu<Rank>, policy: &Policy) -> bool {
    let own = &vcpus[usize::from(id.0)];
    let mut others = vcpus.iter().enumerate();
    others.any(|(index, other)| {
        cores_of(other, policy) & cores_of(own, policy) != 0
            && ranks[VcpuId(index as u8)].level < ranks[id].level
    })
}

/// Has a vCPU its home where one of a higher level has it too, and another core to go to? `order` is that of its home.
pub fn shares_home_with_higher(vcpus: &[Vcpu], id: VcpuId, order: &Order) -> bool {
    let own = &vcpus[usize::from(id.0)];
    let mut others = vcpus.iter().enumerate().filter(|(_, other)| other.home == own.home);
    own.cores & !(1 << own.home) != 0
        && others.any(|(index, _)| order.rank(VcpuId(index as u8)).level > order.rank(id).level)
}
