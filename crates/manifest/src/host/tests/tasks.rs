//! `[[guest.task]]`.
use super::*;

/// FreeRTOS with two tasks.
const TASKS: &str = r#"background = true
[[guest.task]]
name = "control"
period = "1ms"
execution = "150us"
priority = 3
[[guest.task]]
name = "log"
period = "10ms"
execution = "2ms"
deadline = "15ms"
priority = 1
hart = 1
jitter = "5us"
blocking = "20us"
remote_blocking = "15us"
handler = true
"#;

fn with(tasks: &str) -> String {
    GOOD.replace("background = true\n", tasks)
}

#[test]
fn tasks_are_read_with_their_defaults() {
    let manifest = parse(&with(TASKS)).unwrap();
    assert_eq!(manifest.tasks[0], []);
    let control = Task {
        name: "control".into(),
        hart: 1,
        period_us: 1_000,
        execution_us: 150,
        deadline_us: 1_000,
        priority: 3,
        jitter_us: 0,
        blocking_us: 0,
        remote_blocking_us: 0,
        is_handler: false,
        line: 28,
    };
    let log = Task {
        name: "log".into(),
        hart: 1,
        period_us: 10_000,
        execution_us: 2_000,
        deadline_us: 15_000,
        priority: 1,
        jitter_us: 5,
        blocking_us: 20,
        remote_blocking_us: 15,
        is_handler: true,
        line: 33,
    };
    assert_eq!(manifest.tasks[1], [control, log]);
}

#[test]
fn what_is_waited_for_elsewhere_is_a_part_of_blocking() {
    let all = parse(&with(&TASKS.replace("remote_blocking = \"15us\"\n", ""))).unwrap();
    assert_eq!(all.tasks[1][1].remote_blocking_us, 20);
    let more = parse(&with(&TASKS.replace("\"15us\"", "\"21us\""))).unwrap_err();
    assert!(more.iter().any(|finding| finding.message.contains("21 us is more than the 20 us of blocking")));
}

/// They are for the host alone: what the hypervisor gets is the same with them.
#[test]
fn tasks_are_not_in_the_image() {
    let (without, with) = (parse(GOOD).unwrap(), parse(&with(TASKS)).unwrap());
    assert_eq!(without.system, with.system);
}

#[test]
fn a_task_has_what_it_needs() {
    let told = |from: &str, to: &str, expected: &str| {
        let text = with(&TASKS.replacen(from, to, 1));
        assert!(text != with(TASKS), "{from} isn't there");
        let found = errors(&text);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    };
    told("period = \"1ms\"\n", "", "[[guest.task]] needs the key `period`");
    told("execution = \"150us\"\n", "", "[[guest.task]] needs the key `execution`");
    told("priority = 3\n", "", "[[guest.task]] needs the key `priority`");
    told("priority = 3", "priority = 256", "there is no task priority 256");
    told("\"1ms\"", "\"0us\"", "period: 0 us is out of range");
    told("\"150us\"", "\"0us\"", "execution: 0 us is out of range");
    told("\"15ms\"", "\"2000min\"", "deadline: 120000000000 us is out of range");
    told("\"15ms\"", "15", "`deadline` must be a duration");
    told("\"log\"", "\"control\"", "two tasks of this guest have the name \"control\"");
    told("\"log\"", "\"Log file\"", "can't be a task's name");
    told("hart = 1\n", "hart = 2\n", "no vCPU of freertos has its home on hart 2");
    told("hart = 1\n", "hartt = 1\n", "[[guest.task]] has no key `hartt`");
    let single = GOOD.replace("background = true\n", "background = true\n[guest.task]\nname = \"a\"\n");
    assert!(errors(&single)[0].contains("`task` must be a list of tables"), "{:?}", errors(&single));
}

#[test]
fn a_task_of_a_guest_on_several_harts_says_where_it_is() {
    let linux = "priority = 1\n[[guest.task]]\nname = \"audio\"\nperiod = \"5ms\"\nexecution = \"1ms\"\npriority = 1\n";
    let text = GOOD.replacen("priority = 1\n", linux, 1);
    let found = errors(&text);
    assert!(found.len() == 1 && found[0].contains("linux has vCPUs on several harts"), "{found:?}");
    let manifest = parse(&text.replacen("\"audio\"\n", "\"audio\"\nhart = 3\n", 1)).unwrap();
    assert_eq!(manifest.tasks[0][0].hart, 3);
}
