//! The models of harts that a manifest can name, and what QEMU's properties behind the model make of them.

/// A model of QEMU's.
#[derive(Debug)]
pub struct Model {
    /// As `-cpu` takes it.
    pub name: &'static str,
    /// Which of the properties that the rules ask for it hasn't by itself.
    lacks: &'static [&'static str],
    /// It is a maker's: it can't be given more than it has.
    is_a_makers: bool,
}

impl Model {
    const fn of_qemu(name: &'static str, lacks: &'static [&'static str]) -> Self {
        Self { name, lacks, is_a_makers: false }
    }

    const fn of_a_maker(name: &'static str, lacks: &'static [&'static str]) -> Self {
        Self { name, lacks, is_a_makers: true }
    }
}

/// The models with 64 bits and supervisor mode, `rv64i` among them, as all of that can be switched on there. What each has by itself is as the device
/// tree of QEMU 10.0.2 tells it (`-M virt,dumpdtb=FILE -cpu MODEL`: `riscv,isa-extensions`, `mmu-type`).
pub const MODELS: &[Model] = &[
    Model::of_qemu("rv64", &["smstateen"]),
    Model::of_qemu("max", &[]),
    Model::of_qemu("rva23s64", &[]),
    Model::of_a_maker("tt-ascalon", &[]),
    Model::of_a_maker("veyron-v1", &[]),
    Model::of_qemu("rva22s64", WITHOUT_H),
    Model::of_a_maker("shakti-c", WITHOUT_H),
    Model::of_a_maker("sifive-u54", WITHOUT_H),
    Model::of_a_maker("thead-c906", WITHOUT_H),
    Model::of_a_maker("xiangshan-nanhu", WITHOUT_H),
    Model::of_qemu("rv64i", &["h", "sstc", "smstateen", "m", "a", "c", "s", "zicsr", "zifencei", "sv39"]),
];

const WITHOUT_H: &[&str] = &["h", "sstc", "smstateen"];

/// What switches a property on as well. Of the profiles that are properties (`rv64i,rva23s64=on`), these have supervisor mode.
const IMPLIED: &[(&str, &[&str])] = &[
    ("m", &["g", RVA22, RVA23]),
    ("a", &["g", RVA22, RVA23]),
    ("c", &[RVA22, RVA23]),
    ("s", &[RVA22, RVA23]),
    ("zicsr", &["g", RVA22, RVA23]),
    ("zifencei", &["g", RVA22, RVA23]),
    ("sv39", &["sv48", "sv57", "sv64", RVA22, RVA23]),
    ("sstc", &[RVA23]),
    ("smstateen", &[RVA23]),
    ("h", &[RVA23]),
];
const RVA22: &str = "rva22s64";
const RVA23: &str = "rva23s64";

/// Beside those above, the properties that the rules ask for.
const ASKED_FOR: [&str; 10] = ["mmu", "zfinx", "zcmt", "ssctr", "g", "sv48", "sv57", "sv64", RVA22, RVA23];

fn do_rules_ask_for(property: &str) -> bool {
    IMPLIED.iter().any(|(known, _)| *known == property) || ASKED_FOR.contains(&property)
}

/// The model in a CPU's text.
pub fn model(cpu: &str) -> &str {
    cpu.split(',').next().unwrap_or_default()
}

fn known(cpu: &str) -> Option<&'static Model> {
    MODELS.iter().find(|known| known.name == model(cpu))
}

/// Has such a hart what the property stands for? `None` for a model that isn't known.
pub fn has(cpu: &str, property: &str) -> Option<bool> {
    let model = known(cpu)?;
    let implied = || {
        let others = IMPLIED.iter().filter(|(what, _)| *what == property).flat_map(|(_, by)| *by);
        others.into_iter().any(|other| is_set(cpu, other) == Some(true))
    };
    Some(is_set(cpu, property).unwrap_or_else(|| !model.lacks.contains(&property) || implied()))
}

/// Is an extension switched on or off by the properties behind the CPU's model? The last one counts; `None`: the model says.
pub fn is_set(cpu: &str, property: &str) -> Option<bool> {
    debug_assert!(do_rules_ask_for(property), "{property} is to be looked at by `misfits` as well");
    truth(settings(cpu).filter(|(name, _)| *name == property).last()?.1)
}

/// What is set behind the model, as far as it has a value.
fn settings(cpu: &str) -> impl Iterator<Item = (&str, &str)> {
    cpu.split(',').skip(1).filter_map(|setting| setting.split_once('='))
}

/// As QEMU reads a truth value: these words and no others, in small letters (`qapi_bool_parse`).
fn truth(value: &str) -> Option<bool> {
    match value {
        "on" | "true" | "yes" | "y" => Some(true),
        "off" | "false" | "no" | "n" => Some(false),
        _ => None,
    }
}

/// What of the properties QEMU would refuse, or read otherwise than [`has`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit<'a> {
    /// No truth value: (property, value).
    NoTruth(&'a str, &'a str),
    /// A name with capitals. QEMU has none, but for a few old ones of Z extensions that it takes with a warning.
    Capitals(&'a str),
    /// A maker's model is to be given what it lacks.
    Added(&'a str),
    /// A profile is switched off, and all that it stands for with it.
    NoProfile(&'a str),
}

/// All of them, of the properties that rules ask for. (Of others only QEMU knows what they take.)
pub fn misfits(cpu: &str) -> impl Iterator<Item = Misfit<'_>> {
    let model = known(cpu);
    settings(cpu).filter_map(move |(name, value)| {
        if name.contains(|letter: char| letter.is_ascii_uppercase()) {
            return Some(Misfit::Capitals(name));
        }
        match truth(value) {
            _ if !do_rules_ask_for(name) => None,
            None => Some(Misfit::NoTruth(name, value)),
            Some(false) => [RVA22, RVA23].contains(&name).then_some(Misfit::NoProfile(name)),
            Some(true) => {
                model.filter(|model| model.is_a_makers && model.lacks.contains(&name))?;
                Some(Misfit::Added(name))
            }
        }
    })
}
