//! Who can meet whom on a core: facts of a system that never change.
use ainori_sched::{Policy, VcpuId};

use crate::guest::vcpu::Vcpu;

/// The cores that a vCPU can come to, a bit each.
fn cores_of(vcpu: &Vcpu, policy: &Policy) -> u64 {
    if policy.moves() { vcpu.cores } else { 1 << vcpu.home }
}

/// Can no other vCPU ever come to the core of this one, and this one to no other?
pub fn is_alone(vcpus: &[Vcpu], id: VcpuId, policy: &Policy) -> bool {
    let own = cores_of(&vcpus[usize::from(id.0)], policy);
    let others = vcpus.iter().enumerate().filter(|(index, _)| *index != usize::from(id.0));
    own.is_power_of_two() && others.map(|(_, other)| cores_of(other, policy)).all(|set| set & own == 0)
}

/// Can a vCPU take a core from one of a lower level, at home or as a visitor?
pub fn takes_cores(vcpus: &[Vcpu], id: VcpuId, policy: &Policy) -> bool {
    let own = &vcpus[usize::from(id.0)];
    let meets = |other: &&Vcpu| cores_of(other, policy) & cores_of(own, policy) != 0;
    vcpus.iter().filter(meets).any(|other| policy.level(other.class) < policy.level(own.class))
}

/// Has a vCPU its home where one of a higher level has it too, and another core to go to?
pub fn shares_home_with_higher(vcpus: &[Vcpu], id: VcpuId, policy: &Policy) -> bool {
    let own = &vcpus[usize::from(id.0)];
    let mut others = vcpus.iter().filter(|other| other.home == own.home);
    own.cores & !(1 << own.home) != 0
        && others.any(|other| policy.level(other.class) > policy.level(own.class))
}
