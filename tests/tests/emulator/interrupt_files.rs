//! Guest interrupt files of the harts (AIA): what is stored there by a guest reaches its vCPU without the hypervisor, waits without disturbing anybody where
//! that one mustn't run, and wakes it where it may.
use ainori_tests::{Clock, Guest, IMSIC, Run, System};

const LOCKSTEP: Clock = Clock::Lockstep { q: 100 };

/// A board on which each hart has files enough.
fn on(harts: u32) -> System {
    System::on(harts).interrupts(IMSIC)
}

/// Sends from hart 0 to hart 1.
fn messages(args: &str) -> Guest {
    Guest::probe("messages", args).vcpus(2).harts([0, 1])
}

/// The same beside others that come first on hart 1.
fn less_urgent_messages(args: &str) -> Guest {
    messages(args).priority(3)
}

/// Exits of the vCPU whatever for.
fn all_exits(run: &Run, guest: &str, vcpu: usize) -> u64 {
    run.exits(guest, vcpu)
}

/// Neither one vCPU's store nor the other one's interrupt concerns the hypervisor, while both run.
#[test]
fn a_message_between_running_vcpus_costs_no_exit() {
    let exits = |n: u64| {
        let run = on(2).with(messages(&format!("n={n} period_us=20 busy=1"))).run(LOCKSTEP);
        run.good();
        [0, 1].map(|vcpu| all_exits(&run, "messages", vcpu))
    };
    let (few, many) = (exits(200), exits(2_200));
    println!("200 messages: {few:?} exits, 2,200: {many:?}");
    assert_eq!(few, many, "2,000 more messages should change nothing");
}

/// Whom a message is for waits for its hart: it comes as soon as the urgent guest leaves that, which has noticed nothing. In two rounds of three nothing is sent:
/// the hart idles, and the urgent guest goes on from there.
#[test]
fn a_held_back_message_costs_the_running_guest_nothing() {
    for period in [1_000, 3_000] {
        let hearer = format!("n=100000 period_us={period} phase_us=300");
        let run = on(2)
            .with(Guest::probe("bursts", "n=300 us=800 pause_us=1000").harts([1]).priority(9))
            .with(less_urgent_messages(&hearer).background())
            .run(LOCKSTEP);
        run.good();
        let exits = &run.guest("bursts").vcpus[0].exits;
        println!("a message each {period} us: {exits:?}, core {:?}", run.core(1));
        let disturbed: u64 = ["external", "ipi"].iter().filter_map(|cause| exits.get(*cause)).sum();
        run.check(disturbed == 0, format_args!("each {period} us: {disturbed} messages for others"));
    }
}
