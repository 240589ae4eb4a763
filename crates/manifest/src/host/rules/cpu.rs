//! The harts of the board: a model that is known, with all that the hypervisor needs and nothing that guests can't be kept apart with.
use crate::host::{
    cpus::{self, MODELS, Misfit},
    findings::Finding,
    reader::{At, suggest},
};

/// What the hypervisor doesn't boot without, on any harts: the properties of QEMU, and what they stand for. It is compiled for some of them.
const NEEDED: [(&str, &str); 8] = [
    ("m", "the M extension"),
    ("a", "the A extension"),
    ("c", "the C extension"),
    ("s", "supervisor mode"),
    ("zicsr", "the Zicsr extension"),
    ("zifencei", "the Zifencei extension"),
    ("mmu", "Sv39"),
    ("sv39", "Sv39"),
];

/// Have these harts the H extension? `None` if that can't be known, as there is an error in it.
pub fn check(cpu: &At<String>, findings: &mut Vec<Finding>) -> Option<bool> {
    let text = &*cpu.value;
    let before = findings.len();
    let mut report = |message: String, help: String| {
        findings.push(Finding::at(cpu.span.clone(), message).help(help));
    };
    let model = cpus::model(text);
    if !MODELS.iter().any(|known| known.name == model) || text.contains(char::is_whitespace) {
        let names: Vec<&str> = MODELS.iter().map(|known| known.name).collect();
        report(
            format!("{text:?} is not a CPU for this board"),
            format!(
                "a 64-bit model of QEMU and its properties without spaces, e.g. \"rv64,v=true\"; {}",
                suggest(model, &names)
            ),
        );
    }
    if text.split(',').any(str::is_empty) {
        report(
            format!("{text:?} has a comma with nothing behind it"),
            "one comma before each property".into(),
        );
    } else if let Some(property) = text.split(',').skip(1).find(|property| !property.contains('=')) {
        let message = format!("the property {property:?} of the CPU has no value");
        report(message, format!("{property}=true or {property}=false"));
    }
    for misfit in cpus::misfits(text) {
        let (message, help) = say(misfit, text);
        report(message, help);
    }
    for (property, what) in NEEDED {
        if cpus::has(text, property) == Some(false) {
            let message = format!("{text:?} lacks {what}, which Ainori needs");
            report(message, "use \"rv64\", which has it, and don't switch it off".into());
        }
    }
    for (extension, help) in inseparable(text) {
        report(
            format!(
                "on harts with {extension}, guests can't be kept apart: it has a register that is neither switched nor hidden"
            ),
            help.into(),
        );
    }
    cpus::has(text, "h").filter(|_| findings.len() == before)
}

/// What is wrong with a property, and what to do.
fn say(misfit: Misfit<'_>, cpu: &str) -> (String, String) {
    match misfit {
        Misfit::NoTruth(name, value) => (
            format!(
                "{value:?} is no value for the property {name:?} of the CPU: QEMU takes a word for on or off"
            ),
            format!("{name}=on or {name}=off"),
        ),
        Misfit::Capitals(name) => (
            format!("QEMU's CPUs have no property {name:?}: their names have small letters"),
            format!("write {:?}", name.to_ascii_lowercase()),
        ),
        Misfit::Added(name) => (
            format!("{:?} has no {name}, and a maker's model can't be given any", cpus::model(cpu)),
            format!("leave {name} out, or choose \"rv64\", which can have it"),
        ),
        Misfit::NoProfile(name) => (
            format!(
                "the profile {name} can't be switched off: with it goes all that it stands for, supervisor mode too"
            ),
            "leave it out, and switch off what shouldn't be there".into(),
        ),
    }
}

/// Extensions with registers that nothing keeps apart between guests, with what to do: the hypervisor would refuse to boot on such harts.
fn inseparable(cpu: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_on = |name: &str| cpus::is_set(cpu, name) == Some(true);
    let hides = cpus::has(cpu, "smstateen") == Some(true);
    let hidden = "leave it out, or add smstateen=on, with which it is hidden";
    let all = [("zfinx", true, "leave it out"), ("zcmt", !hides, hidden), ("ssctr", !hides, hidden)];
    all.into_iter()
        .filter(move |(name, is_refused, _)| *is_refused && is_on(name))
        .map(|(name, _, help)| (name, help))
}
