//! Where the hypervisor does its own slow work.

/// The core that keeps house, of `cores`. `residents` are the vCPUs: the core of the home of each, and its priority.
///
/// Housework lies beside the least urgent guests of its core, and is hidden from all others there. So it is for the core
/// whose least urgent guest is the least urgent of all, and an RTOS that has a core to itself is left alone as long as another core has somebody less urgent, or
/// nobody at all. Of several, it is for the one whose most urgent guest is less urgent, then for the one with fewer vCPUs. A core where nobody is at home goes
/// before all. Only at boot.
pub fn housekeeping_core(cores: usize, residents: impl Iterator<Item = (usize, u8)> + Clone) -> usize {
    let rank = |core: &usize| {
        let priorities = residents.clone().filter(|(home, _)| home == core).map(|(_, priority)| priority);
        (priorities.clone().min(), priorities.clone().max(), priorities.count())
    };
    (0..cores).min_by_key(rank).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::housekeeping_core;

    /// The priorities of each core's residents.
    fn chosen(cores: &[&[u8]]) -> usize {
        let residents =
            cores.iter().enumerate().flat_map(|(core, all)| all.iter().map(move |one| (core, *one)));
        housekeeping_core(cores.len(), residents)
    }

    #[test]
    fn house_is_kept_beside_the_least_urgent_guest() {
        assert_eq!(chosen(&[&[3], &[1], &[2]]), 1);
        assert_eq!(chosen(&[&[5, 2], &[4, 1]]), 1);
    }

    #[test]
    fn an_rtos_that_has_a_core_to_itself_is_left_alone() {
        assert_eq!(
            chosen(&[&[10], &[12, 1]]),
            1,
            "though a more urgent one is on the other core: housework is hidden from that"
        );
    }

    #[test]
    fn of_equals_the_core_without_an_rtos_is_chosen() {
        assert_eq!(chosen(&[&[10, 1], &[1], &[11, 1]]), 1);
    }

    #[test]
    fn of_equals_the_core_with_fewer_vcpus_is_chosen() {
        assert_eq!(chosen(&[&[1, 1, 1], &[1, 1], &[1, 1]]), 1);
    }

    #[test]
    fn a_core_where_nobody_is_at_home_goes_before_all() {
        assert_eq!(chosen(&[&[0], &[], &[1]]), 1);
    }
}
