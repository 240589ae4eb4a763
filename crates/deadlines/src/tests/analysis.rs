//! Whole systems: which answers there are, and what the hypervisor adds.
use crate::analysis::{HartAnswer, Part, Verdict, analyse};
use crate::costs::{FILE, MIPS, Paths};
use crate::system::{Guest, System, Task, Vcpu};
use ainori_sched::{Policy, presets};

const US: u64 = 1_000;

fn paths() -> Paths {
    toml::from_str(FILE).unwrap()
}

fn task(priority: u8, period_us: u64, execution_us: u64) -> Task {
    Task {
        name: format!("p{priority}"),
        hart: 0,
        period_ns: period_us * US,
        execution_ns: execution_us * US,
        deadline_ns: period_us * US,
        priority,
        jitter_ns: 0,
        blocking_ns: 0,
    }
}

fn guest(name: &str, priority: u8, tasks: &[Task]) -> Guest {
    let vcpus = vec![Vcpu { home: 0, harts: 1 }];
    let priorities = vec![priority; 2];
    Guest { name: name.into(), vcpus, priorities, has_devices: false, tasks: tasks.to_vec() }
}

fn system(preset: &str, guests: &[Guest]) -> System {
    System {
        policy: Policy::preset(preset, 1, 1_000).unwrap(),
        grace_ns: 100 * US,
        advance_ns: 6 * US,
        harts: 2,
        housekeeping_hart: 1,
        is_traced: false,
        guests: guests.to_vec(),
    }
}

fn hart(system: &System) -> HartAnswer {
    let mut answers = analyse(system, &paths(), MIPS);
    assert_eq!(answers.len(), 1, "only hart 0 has tasks");
    answers.remove(0)
}

fn verdicts(system: &System) -> Vec<Verdict> {
    hart(system).tasks.into_iter().map(|answer| answer.verdict).collect()
}

fn unsaid(system: &System) -> String {
    match &verdicts(system)[..] {
        [Verdict::Unsaid(why), ..] => why.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn alone_on_a_hart_nothing_is_switched() {
    let system = system("ainori", &[guest("rtos", 10, &[task(2, 1_000, 300), task(1, 5_000, 900)])]);
    let answer = hart(&system);
    // What the hypervisor may have begun is 10 us.
    assert_eq!(answer.tasks[0].response_ns, Some(310 * US));
    assert_eq!(answer.tasks[1].response_ns, Some((900 + 2 * 300 + 10) * US));
    assert_eq!(answer.left_ppm(), 1_000_000 - 300_000 - 180_000);
}

#[test]
fn beside_linux_the_guest_is_switched_to_once() {
    let guests = [guest("rtos", 10, &[task(2, 1_000, 300), task(1, 5_000, 900)]), guest("linux", 1, &[])];
    let answer = hart(&system("spumone", &guests));
    // To the guest: the advance of 6 us and the guard of 5 us; back: 815 and 350 instructions of 4 ns.
    let switches = 11_000 + 4_660;
    assert_eq!(answer.tasks[0].response_ns, Some(310 * US + switches));
    let low = &answer.tasks[1];
    // It is awake until the job has ended, so more urgent jobs of its own cost no other switch.
    assert_eq!(low.response_ns, Some((900 + 2 * 300 + 10) * US + switches));
    assert_eq!(low.parts[0], Part::Own { jobs: 1, ns: 900 * US });
    assert_eq!(low.parts[1], Part::Task { guest: 0, task: 0, jobs: 2, ns: 600 * US });
    assert_eq!(low.parts[2..], [Part::Switches { ns: switches }, Part::Begun { ns: 10 * US }]);
    assert_eq!(low.verdict, Verdict::Met);
    // In the long run it may sleep between any two jobs.
    let taken = (300_000 + 15_660) + (180_000 + 3_132);
    assert_eq!(answer.taken_ppm, taken);
}

#[test]
fn a_guest_above_comes_first_whatever_the_tasks_priorities_are() {
    let guests = [guest("low", 5, &[task(9, 2_000, 500)]), guest("high", 6, &[task(1, 1_000, 400)])];
    let answer = hart(&system("spumone", &guests));
    assert_eq!(answer.tasks[0].guest, 1);
    let low = &answer.tasks[1];
    assert!(low.parts.contains(&Part::Task { guest: 1, task: 0, jobs: 1, ns: 400 * US }), "{low:?}");
    assert!(low.parts.contains(&Part::Switches { ns: 2 * 15_660 }), "each job of another guest costs one");
    assert!(low.response_ns > Some(900 * US) && low.verdict == Verdict::Met, "{low:?}");
}

#[test]
fn a_priority_on_the_hart_counts() {
    let mut here = guest("b", 5, &[task(1, 1_000, 100)]);
    here.priorities = vec![7, 5];
    let guests = [guest("a", 6, &[task(1, 1_000, 100)]), here];
    assert_eq!(hart(&system("ainori", &guests)).tasks[0].guest, 1);
}

#[test]
fn a_miss_says_by_how_much() {
    let late = Task { deadline_ns: 400 * US, ..task(1, 1_000, 300) };
    let guests = [guest("rtos", 10, &[task(2, 1_000, 200), late])];
    assert_eq!(verdicts(&system("partition", &guests)), [Verdict::Met, Verdict::Missed { by_ns: 110 * US }]);
    let guests = [guest("rtos", 10, &[task(2, 1_000, 600), task(1, 1_000, 500)])];
    assert!(matches!(verdicts(&system("partition", &guests))[..], [Verdict::Met, Verdict::Unbounded(_)]));
}

#[test]
fn a_grace_blocks_where_the_policy_defers() {
    let guests = [guest("rtos", 10, &[task(1, 1_000, 300)]), guest("linux", 1, &[])];
    let response = |preset| {
        let system = System { harts: 64, ..system(preset, &guests) };
        hart(&system).tasks[0].response_ns.unwrap()
    };
    let more = response("safe-unsafe") - response("spumone");
    assert_eq!(more, 100 * US);
    assert_eq!(response("delayed"), response("safe-unsafe"));
    // Looking for another core: 625 instructions, and 32 for each of 64 harts. That is longer than the hart is taken ahead.
    let (to, ahead) = ((600 + 350 + 625 + 32 * 64) * 4, 11_000);
    assert_eq!(response("spumone-on-demand") - response("spumone"), to - ahead);
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    let rtos = || guest("rtos", 10, &[task(1, 1_000, 300)]);
    let because = |preset, guests: &[Guest], why: &str| {
        let reason = unsaid(&system(preset, guests));
        assert!(reason.contains(why), "{reason}");
    };
    because("spumone", &[rtos(), guest("linux", 10, &[])], "takes turns with linux");
    because("spumone", &[rtos(), guest("linux", 11, &[])], "no task there says");
    because("round-robin", &[rtos(), guest("linux", 1, &[])], "takes turns");
    because("spumone-without-split", &[rtos(), guest("linux", 1, &[])], "at any time");
    let wide = Guest { vcpus: vec![Vcpu { home: 0, harts: 3 }], ..rtos() };
    because("ainori", std::slice::from_ref(&wide), "may leave hart 0");
    because(
        "ainori",
        &[
            Guest { name: "high".into(), ..wide.clone() },
            Guest { vcpus: rtos().vcpus, ..guest("low", 2, &[task(1, 1_000, 1)]) },
        ],
        "may leave hart 0",
    );
    assert_eq!(verdicts(&system("spumone", &[wide])), [Verdict::Met]);
    let two = Guest { vcpus: vec![Vcpu { home: 0, harts: 1 }; 2], ..rtos() };
    because("spumone", &[two], "several vCPUs");
    // A Linux whose home is elsewhere comes only under policies that move it.
    let linux = Guest { vcpus: vec![Vcpu { home: 1, harts: 3 }], ..guest("linux", 20, &[]) };
    because("ainori", &[rtos(), linux.clone()], "no task there says");
    assert_eq!(verdicts(&system("spumone", &[rtos(), linux])), [Verdict::Met]);
    // The least urgent may be anybody.
    let guests = [guest("a", 5, &[task(1, 1_000, 10)]), guest("b", 5, &[task(1, 1_000, 10)])];
    because("spumone", &guests, "takes turns with b");
}

/// A policy that moves vCPUs looks after those that the RTOS keeps waiting (random set 138 was 0.6 us later than its bound, as that was left out).
#[test]
fn looking_after_those_that_can_move_interrupts_an_rtos() {
    let linux = Guest { vcpus: vec![Vcpu { home: 0, harts: 3 }; 2], ..guest("linux", 1, &[]) };
    let guests = [guest("rtos", 10, &[task(1, 20_000, 6_500)]), linux];
    let answer = |preset| hart(&system(preset, &guests)).tasks[0].clone();
    let pinned = answer("spumone");
    let moving = answer("balance");
    // 2,800 instructions each millisecond; and once at first, with another hart sought for the second one.
    let (look, kick) = (11_200, (625 + 2 * 32) * 4);
    assert!(moving.parts.contains(&Part::Moving { ns: 7 * look }), "{moving:?}");
    assert_eq!(moving.response_ns.unwrap() - pinned.response_ns.unwrap(), 8 * look + kick);
}

/// Interrupts of the board have seven levels.
#[test]
fn devices_of_the_less_urgent_may_interrupt_where_there_are_too_many_priorities() {
    let verdicts = |above: u8| {
        let owner = Guest { has_devices: true, ..guest("linux", 1, &[]) };
        let elsewhere = (0..above).map(|index| Guest {
            vcpus: vec![Vcpu { home: 1, harts: 2 }],
            ..guest("other", 11 + index, &[])
        });
        let guests: Vec<Guest> =
            [guest("rtos", 10, &[task(1, 1_000, 300)]), owner].into_iter().chain(elsewhere).collect();
        verdicts(&system("spumone", &guests))
    };
    assert_eq!(verdicts(5), [Verdict::Met]);
    assert!(matches!(&verdicts(6)[0], Verdict::Unsaid(why) if why.contains("the devices of linux")));
}

#[test]
fn housework_is_beside_the_least_urgent_guest_of_its_hart() {
    let response = |guests: &[Guest], housekeeping_hart| {
        let system = System { housekeeping_hart, ..system("spumone", guests) };
        hart(&system).tasks[0].clone()
    };
    let rtos = guest("rtos", 10, &[task(1, 1_000, 300)]);
    let alone = response(std::slice::from_ref(&rtos), 0);
    // Pieces of 800 instructions, each behind a pause of 12 us, for 300 us.
    assert!(alone.response_ns > Some(370 * US) && alone.response_ns < Some(450 * US), "{alone:?}");
    let beside = response(&[rtos.clone(), guest("linux", 1, &[])], 0);
    assert!(beside.parts.contains(&Part::Housework { ns: 3_200 }), "{beside:?}");
    let elsewhere = response(&[rtos, guest("linux", 1, &[])], 1);
    assert!(!elsewhere.parts.iter().any(|part| matches!(part, Part::Housework { .. })), "{elsewhere:?}");
}

#[test]
fn a_faster_hart_needs_less_and_a_trace_more() {
    let plain = system("spumone", &[guest("rtos", 10, &[task(1, 1_000, 300)]), guest("linux", 1, &[])]);
    let response = |system: &System, mips| analyse(system, &paths(), mips)[0].tasks[0].response_ns.unwrap();
    assert!(response(&plain, 1_000) < response(&plain, 250));
    let traced = System { is_traced: true, ..plain.clone() };
    assert!(response(&traced, 250) > response(&plain, 250));
}

/// Whatever the preset is, there is an answer for an RTOS beside a Linux below, and none is "met" where priorities don't count.
#[test]
fn all_presets_have_an_answer() {
    for preset in presets() {
        let guests = [guest("rtos", 10, &[task(1, 1_000, 300)]), guest("linux", 1, &[])];
        let system = system(preset.name, &guests);
        let is_said = !matches!(verdicts(&system)[0], Verdict::Unsaid(_));
        assert_eq!(is_said, !matches!(preset.name, "round-robin" | "spumone-without-split" | "partition"));
    }
}
