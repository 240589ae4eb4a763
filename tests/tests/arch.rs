//! A lint: what knows RISC-V's privileged registers and instructions is in kernel/src/arch. The rest of the kernel speaks of guests, cores and
//! interrupts, so that a back end for other harts is one more folder there.
//!
//! Which names those are, kernel/src/arch/riscv/csr.rs says: its registers, and their fields. (That nobody reaches that file past `arch`, the compiler
//! sees to, since the folders are private. This test is about those who would make names of their own.) It reads code, not comments and texts.
use std::collections::BTreeSet;
use std::fs;

use ainori_tests::{checkout, files};
use proc_macro2::{TokenStream, TokenTree};
use syn::{File, Item};

/// Instructions that an S-mode or a guest in it executes, and what assembles them.
const INSTRUCTIONS: [&str; 8] =
    ["ECALL", "SRET", "WFI", "WRS_NTO", "WRS_STO", "asm", "global_asm", "naked_asm"];

/// The names that belong to `arch`.
struct Names {
    /// Registers, in lower case: no part of a name may be one.
    registers: BTreeSet<String>,
    /// Fields and instructions: no name may be one.
    whole: BTreeSet<String>,
}

impl Names {
    fn of(csr: &str) -> Self {
        let file: File = syn::parse_file(csr).expect("the source is Rust");
        let mut names = Self {
            registers: BTreeSet::from(["csr".to_owned()]),
            whole: INSTRUCTIONS.iter().map(ToString::to_string).collect(),
        };
        for item in &file.items {
            match item {
                // Everybody may speak of time.
                Item::Const(register) if register.ident != "TIME" => {
                    names.registers.insert(register.ident.to_string().to_lowercase());
                }
                // The lines of a guest have these names everywhere.
                Item::Mod(fields) if fields.ident != "virtual_interrupt" => {
                    let items = fields.content.iter().flat_map(|(_, items)| items);
                    let constants =
                        items.filter_map(|item| if let Item::Const(c) = item { Some(c) } else { None });
                    names.whole.extend(constants.map(|field| field.ident.to_string()));
                }
                _ => {}
            }
        }
        names
    }

    /// Those that a source uses, each with its line.
    fn used_by(&self, tokens: TokenStream, used: &mut Vec<(usize, String)>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.used_by(group.stream(), used),
                TokenTree::Ident(ident) => {
                    let name = ident.to_string();
                    let mut parts = name.split('_').map(str::to_lowercase);
                    if self.whole.contains(&name) || parts.any(|part| self.registers.contains(&part)) {
                        used.push((ident.span().start().line, name));
                    }
                }
                _ => {}
            }
        }
    }

    fn in_text(&self, text: &str) -> Vec<(usize, String)> {
        let mut used = Vec::new();
        self.used_by(text.parse().expect("the source is Rust"), &mut used);
        used
    }
}

fn names() -> Names {
    Names::of(
        &fs::read_to_string(checkout("kernel/src/arch/riscv/csr.rs")).expect("there is a list of registers"),
    )
}

#[test]
fn what_knows_risc_v_is_in_arch() {
    let names = names();
    assert!(
        names.registers.contains("hstatus") && names.whole.contains("SPP"),
        "the list of registers is another one"
    );
    let mut found = files("kernel/src", ".rs");
    found.retain(|path| !path.starts_with("kernel/src/arch"));
    assert!(found.len() > 30, "only {found:?}");
    let mut faults = Vec::new();
    for path in found {
        let path = path.display().to_string();
        let used = names.in_text(&fs::read_to_string(checkout(&path)).expect("it can be read"));
        faults.extend(
            used.iter().map(|(line, name)| format!("{path}:{line}: `{name}` belongs in kernel/src/arch")),
        );
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

mod the_lint_itself {
    use super::names;

    #[test]
    fn sees_registers_fields_and_instructions() {
        for line in [
            "use crate::arch::csr::hstatus;",
            "resident.context.hstatus &= !1;",
            "let saved_vsstatus = 0;",
            "const SCAUSE: u16 = 0x142;",
            "world.hvip |= lines;",
            "context.sstatus & SPP != 0;",
            "const WFI: u32 = 0x1050_0073;",
            "unsafe { core::arch::asm!(\"wfi\") };",
            "assert!(x.iter().all(|x| x.hgatp != 0));",
        ] {
            let used = names().in_text(&format!("fn f() {{\n{line}\n}}"));
            assert!(!used.is_empty() && used.iter().all(|(at, _)| *at == 2), "{line}: {used:?}");
        }
    }

    #[test]
    fn takes_nothing_else_for_one() {
        for line in [
            "/// `hstatus` is not to be known here.\nlet x = \"sstatus\"; // hvip",
            "Lines::EXTERNAL; Exit::Wfi; clock::now(); const TIME: u64 = 0;",
            "state.watch_returns(true); self.status; let gossip = 1;",
        ] {
            let used = names().in_text(&format!("fn f() {{ {line}\n}}"));
            assert!(used.is_empty(), "{line}: {used:?}");
        }
    }
}
