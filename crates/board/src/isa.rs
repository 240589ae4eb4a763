//! Which extensions guests are told of.
use alloc::{string::String, vec::Vec};

/// Extensions by their lower-case names, in the order of the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isa(Vec<String>);

/// Extensions that a guest may use freely: they add only unprivileged instructions and registers which the world
/// switch keeps, or supervisor features that need no help.
const OFFERED: &str = "\
    i m a f d c v zic64b zicbop ziccamoa ziccif zicclsm ziccrse zicntr zicond zicsr zifencei zihintntl \
    zihintpause zmmul za64rs zaamo zacas zabha zalrsc zawrs zfa zfh zfhmin zca zcb zcd zba zbb zbc zbs \
    zbkb zbkc zbkx zknd zkne zknh zksed zksh zkt zvbb zvbc zvfh zvfhmin zvkb zve32f zve32x zve64d zve64f \
    zve64x ssccptr sscounterenw sstc sstvala sstvecd ssu64xl svinval svnapot svvptc";

/// The extension by which a hart reaches its interrupt file: of the AIA, what supervisors have.
pub const INTERRUPT_FILE: &str = "ssaia";

fn is_offered(name: &str) -> bool {
    OFFERED.split(' ').any(|offered| offered == name)
}

/// What the harts let guests do beyond their own registers, as the bits of `henvcfg` (privileged specification, "Hypervisor Environment
/// Configuration Register") say that could be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Environment {
    /// `cbo.clean`, `cbo.flush`, and `cbo.inval` as a flush.
    pub cleans_blocks: bool,
    /// `cbo.zero`.
    pub zeros_blocks: bool,
    /// Page-based memory types.
    pub memory_types: bool,
    /// Accessed and dirty bits that harts write themselves.
    pub updates_bits: bool,
    /// The vector unit can be switched on.
    pub vectors: bool,
}

impl Isa {
    /// From `riscv,isa-extensions` (names, each ended by a zero byte) or from `riscv,isa` (`rv64imafdch_zicbom_...`).
    pub fn parse(extensions: Option<&[u8]>, string: Option<&str>) -> Self {
        if let Some(names) = extensions {
            let names = names.split(|&byte| byte == 0).filter_map(|name| core::str::from_utf8(name).ok());
            return Self(names.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase).collect());
        }
        let lower = string.unwrap_or_default().to_ascii_lowercase();
        let mut parts = lower.split('_');
        let letters = parts.next().unwrap_or_default();
        let letters = letters.strip_prefix("rv64").unwrap_or(letters);
        let single = letters.chars().map(String::from);
        Self(single.chain(parts.map(String::from)).collect())
    }

    /// Is the extension there?
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|have| have == name)
    }

    /// Are there vector registers? With V, or with one of its parts for small harts, all of which have the registers and the instructions
    /// that save them (V specification, "Zve*").
    pub fn has_vectors(&self) -> bool {
        self.0.iter().any(|name| name == "v" || name.starts_with("zve"))
    }

    /// Can registers that extensions add be hidden from guests (Smstateen)?
    pub fn hides_registers(&self) -> bool {
        self.has("smstateen") || self.has("ssstateen")
    }

    /// Why guests can't be kept apart on such harts, if there is a register of theirs that is neither switched nor hidden.
    pub fn refused(&self) -> Option<&'static str> {
        let hides = self.hides_registers();
        match () {
            () if self.has("q") => Some("Q: 128-bit floating-point registers"),
            () if self.has("zfinx") => Some("Zfinx: fcsr without a state in sstatus"),
            () if self.has("zcmt") && !hides => Some("Zcmt without Smstateen: jvt"),
            () if self.has("ssctr") && !hides => {
                Some("Ssctr without Smstateen: records of control transfers")
            }
            () => None,
        }
    }

    /// The extensions that both have.
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.iter().filter(|name| other.has(name)).cloned().collect())
    }

    /// What guests are told: extensions that work for them in this environment.
    pub fn for_guests(&self, environment: Environment) -> Self {
        let works = |name: &str| match name {
            "zicbom" => environment.cleans_blocks,
            "zicboz" => environment.zeros_blocks,
            "svpbmt" => environment.memory_types,
            "svadu" => environment.updates_bits,
            _ if name.starts_with('v') || name.starts_with("zv") => environment.vectors && is_offered(name),
            _ => is_offered(name),
        };
        Self(self.0.iter().filter(|name| works(name)).cloned().collect())
    }

    /// With one extension more, behind the others.
    pub fn with(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(String::from(name));
        Self(names)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// As a `riscv,isa` string.
    pub fn string(&self) -> String {
        let mut text = String::from("rv64");
        for name in self.names().filter(|name| name.len() == 1) {
            text.push_str(name);
        }
        for name in self.names().filter(|name| name.len() > 1) {
            text.push('_');
            text.push_str(name);
        }
        text
    }
}
