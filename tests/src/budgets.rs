//! The budgets in budgets.toml: what they say, and whether a count keeps them.
use crate::{
    checkout,
    paths::{Count, Path, Place},
    symbols::Program,
};
use serde::Deserialize;

/// A budget may be so much more than what is needed, in percent: room for other compilers, none for growth that nobody sees.
const SLACK: u64 = 10;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budgets {
    /// Of paths.
    pub budget: Vec<Budget>,
    /// Of what the probe `cost` measures itself.
    pub cost: Vec<Cost>,
    /// Of a record in the trace, in each path that has one.
    pub record: Limit,
}

/// The budget of a path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The path's name in messages.
    pub name: String,
    /// From what to what, in words.
    pub what: String,
    /// The system that goes this path.
    pub system: String,
    from: Landmark,
    to: Landmark,
    via: Option<Landmark>,
    #[serde(default)]
    judge: Judge,
    #[serde(default)]
    except: u64,
    except_instructions: Option<u64>,
    times: u64,
    instructions: u64,
}

/// The budget of something that the probe `cost` does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// What the probe's result calls it.
    pub name: String,
    /// What is done, in words.
    pub what: String,
    /// The system in which the probe does it.
    pub system: String,
    instructions: u64,
}

/// A name and a limit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    name: String,
    instructions: u64,
}

/// Places in a program: see budgets.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Landmark {
    r#in: String,
    symbol: Option<String>,
    instruction: Option<String>,
}

/// Which occurrences have to keep the budget.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Judge {
    #[default]
    Most,
    Typical,
    Least,
}

/// Reads the file.
pub fn read() -> Budgets {
    let path = checkout("tests/budgets.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Landmark {
    fn places(&self) -> Vec<Place> {
        let program = match self.r#in.as_str() {
            "hypervisor" => Program::open(&crate::hypervisor()),
            "freertos" => Program::open(&checkout(".cache/guests/freertos/freertos.elf")),
            probe => Program::open(&checkout(&format!(".cache/guests/probes/{probe}.elf"))),
        };
        let addresses = match (&self.instruction, &self.symbol) {
            (None, Some(symbol)) => vec![program.address(symbol)],
            (Some(instruction), symbol) => {
                let (mask, bits) = encoding(instruction);
                let mut found = program.instructions(mask, bits);
                if symbol.is_some() {
                    found.retain(|address| program.function_at(*address) == *symbol);
                }
                found
            }
            (None, None) => panic!("budgets.toml: a place needs a symbol or an instruction: {self:?}"),
        };
        assert!(!addresses.is_empty(), "budgets.toml: there is no such place: {self:?}");
        let place = if self.r#in == "hypervisor" { Place::Hypervisor } else { Place::Guest };
        addresses.into_iter().map(place).collect()
    }
}

/// Mask and bits of an instruction that a place can name (RISC-V instruction set manual, volumes I and II).
///
/// # Panics
/// If it is none of those.
pub fn encoding(instruction: &str) -> (u32, u32) {
    match instruction {
        "sret" => (u32::MAX, 0x1020_0073),
        "wfi" => (u32::MAX, 0x1050_0073),
        "wrs.nto" => (u32::MAX, 0x00d0_0073),
        // The register whose value is written doesn't matter. The world switch executes it, and nothing else after boot.
        "csrw hgatp" => (0xfff0_7fff, 0x6800_1073),
        _ => panic!("budgets.toml: the instruction {instruction} isn't among those that can be looked for"),
    }
}

impl Budget {
    /// A path for each way: what is inlined stands in several places, only one of which is passed each time.
    pub fn paths(&self) -> Vec<Path> {
        let vias = self.via.as_ref().map_or(vec![None], |via| via.places().into_iter().map(Some).collect());
        let (from, to) = (self.from.places(), self.to.places());
        let mut paths = Vec::new();
        for (from, to, via) in from
            .iter()
            .flat_map(|from| to.iter().map(move |to| (*from, *to)))
            .flat_map(|(from, to)| vias.iter().map(move |via| (from, to, *via)))
        {
            // The plugin wants names without blanks.
            let name = format!("{}-{}", self.name.replace(' ', "-"), paths.len());
            paths.push(Path { name, from, to, via });
        }
        paths
    }

    /// What is wrong with this path, if anything.
    pub fn verdict(&self, count: &Count) -> Option<String> {
        if count.count < self.times {
            return Some(format!(
                "{}: the path was gone {} times, fewer than {}; has a symbol moved?\n{count}",
                self.name, count.count, self.times
            ));
        }
        let found = match self.judge {
            Judge::Most => count.longest_without(self.except),
            Judge::Typical => count.typical(),
            Judge::Least => count.shortest(),
        };
        let longest = count.longest_without(0);
        match self.except_instructions {
            None if self.except != 0 => {
                return Some(format!("{}: `except` needs `except_instructions`", self.name));
            }
            Some(most) if longest > most => {
                let name = &self.name;
                return Some(format!(
                    "{name}: {longest} instructions, more than the {most} of an exception\n{count}"
                ));
            }
            _ => {}
        }
        let limit = Limit { name: self.name.clone(), instructions: self.instructions };
        limit.verdict(found).map(|why| format!("{why}\n  ({})\n{count}", self.what))
    }
}

impl Cost {
    /// What is wrong with the most that the probe has measured, if anything. Times are of a clock on which an instruction takes 4 ns.
    pub fn verdict(&self, most: u64) -> Option<String> {
        let instructions = if self.name.ends_with("_ns") { most / 4 } else { most };
        let limit =
            Limit { name: format!("{} ({})", self.name, self.system), instructions: self.instructions };
        limit.verdict(instructions).map(|why| format!("{why}\n  ({})", self.what))
    }
}

impl Limit {
    /// What is wrong with this number of instructions, if anything.
    pub fn verdict(&self, found: u64) -> Option<String> {
        let Self { name, instructions: budget } = self;
        if found > *budget {
            return Some(format!(
                "{name}: {found} instructions, {} more than its budget of {budget}",
                found - budget
            ));
        }
        // Rounded up, so that a small number has room too.
        let generous = found + (found * SLACK).div_ceil(100);
        (*budget > generous).then(|| {
            format!("{name}: {found} instructions; its budget of {budget} is too generous, set it to at most {generous}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ainori_deadlines::Paths;

    fn limit(instructions: u64) -> Limit {
        Limit { name: "a path".into(), instructions }
    }

    #[test]
    fn a_path_that_has_grown_is_named() {
        assert_eq!(limit(600).verdict(600), None);
        assert_eq!(
            limit(600).verdict(601).as_deref(),
            Some("a path: 601 instructions, 1 more than its budget of 600")
        );
    }

    #[test]
    fn a_budget_that_says_nothing_is_refused() {
        assert_eq!(limit(605).verdict(550), None);
        let why = limit(606).verdict(550).expect("more than 10 %");
        assert!(why.contains("set it to at most 605"), "{why}");
    }

    /// An answer "met" of `ainori check` rests on what the hypervisor takes at most: none of the paths may take more.
    #[test]
    fn the_analysis_of_deadlines_knows_what_paths_may_take() {
        let costs: Paths = toml::from_str(ainori_deadlines::costs::FILE).expect("it can be read");
        let budgets = read();
        let paths = [&costs.dispatch, &costs.sleep, &costs.registers, &costs.trap, &costs.irqs_off];
        let more = [&costs.housework, &costs.kick, &costs.kick_per_hart, &costs.records, &costs.window];
        for cost in paths.into_iter().chain(more) {
            for name in &cost.budgets {
                let budget = budgets.budget.iter().find(|budget| budget.name == *name);
                let budget = budget.unwrap_or_else(|| panic!("costs.toml: there is no budget {name:?}"));
                let (most, stated) = (budget.instructions, cost.instructions);
                assert!(most <= stated, "{name}: a budget of {most}, but costs.toml has {stated}");
            }
        }
        let irqs_off = crate::bounds::IRQS_OFF_BESIDE_RTOS_NS / 4;
        assert!(irqs_off <= costs.irqs_off.instructions, "costs.toml, irqs_off: {irqs_off} are allowed");
        assert!(irqs_off <= costs.housework.instructions, "costs.toml, housework: a piece is a section");
        assert!(10 * budgets.record.instructions <= costs.records.instructions, "costs.toml, records");
        let retries = costs.retry_us.us / ainori_sched::Policy::PATIENCE_US;
        let constants = [
            ("kernel/src/cpu/mechanism/push.rs", format!("RETRY: u64 = {retries};")),
            ("kernel/src/cpu/guard.rs", format!("GUARD_US: u64 = {};", costs.guard_us.us)),
            ("kernel/src/cpu/housekeeping.rs", format!("PAUSE_US: u64 = {};", costs.housework_pause_us.us)),
            ("kernel/src/cpu/given_way.rs", format!("INTERVAL_US: u64 = {};", costs.hidden_housework_us.us)),
        ];
        for (file, constant) in constants {
            let text = std::fs::read_to_string(checkout(file)).expect("it is there");
            assert!(text.contains(&constant), "{file} doesn't say {constant}, but costs.toml does");
        }
    }

    #[test]
    fn exceptions_and_lost_symbols_are_seen() {
        let mut budget =
            read().budget.into_iter().find(|budget| budget.name == "RTOS dispatch").expect("it is there");
        budget.times = 100;
        budget.instructions = 600;
        budget.except = 1;
        budget.except_instructions = Some(1_400);
        let count = |histogram: &[(u64, u64)]| {
            let one = Count { name: "part".into(), count: 0, histogram: histogram.to_vec() };
            Count::merge("all", [one].into_iter())
        };
        assert_eq!(budget.verdict(&count(&[(580, 99), (1_300, 1)])), None);
        let grown = budget.verdict(&count(&[(580, 99), (1_300, 2)])).expect("too long");
        assert!(grown.starts_with("RTOS dispatch: 1300 instructions, 700 more"), "{grown}");
        let endless = budget.verdict(&count(&[(580, 99), (1_401, 1)])).expect("too long for an exception");
        assert!(endless.starts_with("RTOS dispatch: 1401 instructions, more than the 1400"), "{endless}");
        let lost = budget.verdict(&count(&[(580, 99)])).expect("too few");
        assert!(lost.contains("99 times"), "{lost}");
    }
}
