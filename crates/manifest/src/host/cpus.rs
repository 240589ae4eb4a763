//! The models of harts that a manifest can name, and what QEMU's properties behind the model make of them.

/// A model of QEMU's.
#[derive(Debug)]
pub struct Model {
    /// As `-cpu` takes it.
    pub name: &'static str,
    /// Which of the properties that the rules ask for it hasn't by itself.
    lacks: &'static [&'static str],
}

/// The models with 64 bits and supervisor mode, `rv64i` among them, as all of that can be switched on there. What each has by itself is as the device
/// tree of QEMU 10.0.2 tells it (`-M virt,dumpdtb=FILE -cpu MODEL`: `riscv,isa-extensions`, `mmu-type`). A maker's model can't be given more than it has.
pub const MODELS: &[Model] = &[
    Model { name: "rv64", lacks: &["smstateen"] },
    Model { name: "max", lacks: &[] },
    Model { name: "rva23s64", lacks: &[] },
    Model { name: "tt-ascalon", lacks: &[] },
    Model { name: "veyron-v1", lacks: &[] },
    Model { name: "rva22s64", lacks: WITHOUT_H },
    Model { name: "shakti-c", lacks: WITHOUT_H },
    Model { name: "sifive-u54", lacks: WITHOUT_H },
    Model { name: "thead-c906", lacks: WITHOUT_H },
    Model { name: "xiangshan-nanhu", lacks: WITHOUT_H },
    Model {
        name: "rv64i",
        lacks: &["h", "sstc", "smstateen", "m", "a", "c", "s", "zicsr", "zifencei", "sv39"],
    },
];

const WITHOUT_H: &[&str] = &["h", "sstc", "smstateen"];

/// What switches a property on as well.
const IMPLIED: &[(&str, &[&str])] = &[
    ("m", &["g"]),
    ("a", &["g"]),
    ("zicsr", &["g"]),
    ("zifencei", &["g"]),
    ("sv39", &["sv48", "sv57", "sv64"]),
    ("smstateen", &["ssstateen"]),
];

/// The model in a CPU's text.
pub fn model(cpu: &str) -> &str {
    cpu.split(',').next().unwrap_or_default()
}

/// Has such a hart what the property stands for? `None` for a model that isn't known.
pub fn has(cpu: &str, property: &str) -> Option<bool> {
    let model = MODELS.iter().find(|known| known.name == model(cpu))?;
    let implied = || {
        let others = IMPLIED.iter().filter(|(what, _)| *what == property).flat_map(|(_, by)| *by);
        others.into_iter().any(|other| is_set(cpu, other) == Some(true))
    };
    Some(is_set(cpu, property).unwrap_or_else(|| !model.lacks.contains(&property) || implied()))
}

/// Is an extension switched on or off by the properties behind the CPU's model? The last one counts; `None`: the model says.
pub fn is_set(cpu: &str, property: &str) -> Option<bool> {
    let settings = cpu.split(',').skip(1).filter_map(|setting| setting.split_once('='));
    match settings.filter(|(name, _)| *name == property).last()?.1 {
        "on" | "true" | "yes" | "y" => Some(true),
        "off" | "false" | "no" | "n" => Some(false),
        _ => None, // QEMU refuses it.
    }
}
