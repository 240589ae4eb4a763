//! A lint: what knows RISC-V's privileged registers and instructions is in kernel/src/arch. The rest of the kernel speaks of guests, cores and
//! interrupts, so that a back end for other harts is one more folder there.
//!
//! Which names those are, kernel/src/arch/riscv/csr.rs says: its registers, and their fields. (That nobody reaches that file past `arch`, the compiler
//! sees to, since the folders are private. This test is about those who would make names of their own.) It reads code, not comments and texts.
//!
//! And in each register that the file names, something keeps guests apart: the world switch, whose list is read, or what is told here.
use std::collections::BTreeSet;
use std::fs;

use ainori_tests::{checkout, files};
use proc_macro2::{TokenStream, TokenTree};
use syn::{File, Item};

/// Instructions that an S-mode or a guest in it executes, and what assembles them.
const INSTRUCTIONS: [&str; 8] =
    ["ECALL", "SRET", "WFI", "WRS_NTO", "WRS_STO", "asm", "global_asm", "naked_asm"];

/// What keeps guests apart in the registers that are not in the list of the world switch (`registers!` in kernel/src/arch/h/world.rs).
const NOT_IN_THE_LIST: [(&[&str], &str); 11] = [
    (
        &["HGATP", "VSATP", "VSISELECT"],
        "the world switch by hand: their turn matters, or only some harts have it",
    ),
    (&["HVICTL"], "the world switch by hand, from the external interrupt in `hvip`"),
    (&["SEPC", "SSTATUS", "HSTATUS"], "the trap entry, and the way back to the guest"),
    (&["FCSR", "VSTART", "VCSR"], "the exchange of floating-point and vector registers"),
    (
        &["HEDELEG", "HIDELEG"],
        "the policy that confines vCPUs, which sets them as it dispatches, and the world switch by hand where a guest has a shadow; else all have the same",
    ),
    (
        &["HCOUNTEREN", "HENVCFG", "HSTATEEN0", "HTIMEDELTA", "HVIEN", "HVIPRIO1", "HVIPRIO2"],
        "nothing: out of their reach, and the same for all, from when the hart is set up",
    ),
    (
        &[
            "SATP", "SCAUSE", "SIE", "SIP", "SIREG", "SISELECT", "SSCRATCH", "STIMECMP", "STOPEI", "STVAL",
            "STVEC",
        ],
        "the hart: guests have VS registers for these",
    ),
    (&["HGEIE"], "nothing: out of their reach, and set by the world switch by hand"),
    (&["HGEIP", "HIP", "HTINST", "HTVAL"], "nothing: out of their reach, and not written but by the hart"),
    (
        &["VSIREG"],
        "`hstatus.VGEIN`: it is a register of the file that this names, and of none if it names none",
    ),
    (&["TIME", "VLENB"], "nothing: nobody can write them"),
];

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

fn csr_rs() -> String {
    let read = |name: &str| fs::read_to_string(checkout(name)).expect("there is a list of registers");
    // Items of the second are as those of the first, which uses all of them. Its head comment isn't of a file then.
    let of_harts_with_h = read("kernel/src/arch/riscv/csr/hypervisor.rs");
    let items = of_harts_with_h.split_once("\n\n").map_or("", |(_, items)| items);
    read("kernel/src/arch/riscv/csr.rs") + items
}

fn names() -> Names {
    Names::of(&csr_rs())
}

/// The registers that csr.rs names.
fn registers() -> Vec<String> {
    let file: File = syn::parse_file(&csr_rs()).expect("the source is Rust");
    let constants =
        file.items.iter().filter_map(|item| if let Item::Const(c) = item { Some(c) } else { None });
    constants.map(|register| register.ident.to_string()).collect()
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

/// The registers in the list of the world switch: field and CSR, of rows `field: CSR = value,`.
fn switched(world: &str) -> Vec<(String, String)> {
    let file: File = syn::parse_file(world).expect("the source is Rust");
    let list = file.items.into_iter().find_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("registers") => Some(item.mac.tokens),
        _ => None,
    });
    let rows = list.expect("there is a list of registers").into_iter().last();
    let Some(TokenTree::Group(rows)) = rows else { panic!("the list doesn't end with its rows") };
    let tokens: Vec<_> = rows.stream().into_iter().collect();
    let is = |token: &TokenTree, char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == char);
    let rows = tokens.windows(4).filter(|row| is(&row[1], ':') && is(&row[3], '='));
    rows.map(|row| (row[0].to_string(), row[2].to_string())).collect()
}

/// A register that the hypervisor knows, and that nothing switches, may be a leak between guests.
#[test]
fn something_keeps_guests_apart_in_each_register() {
    let world = fs::read_to_string(checkout("kernel/src/arch/h/world.rs")).expect("it can be read");
    let switched = switched(&world);
    assert!(switched.len() > 8, "the list of the world switch is another one: {switched:?}");
    for (field, csr) in &switched {
        assert_eq!(field.to_uppercase(), *csr, "a field has the name of its register");
    }
    let mut kept: Vec<_> = switched.iter().map(|(_, csr)| csr.as_str()).collect();
    kept.extend(NOT_IN_THE_LIST.iter().flat_map(|(registers, _)| registers.iter()));
    let count = |name: &str| kept.iter().filter(|kept| **kept == name).count();
    let registers = registers();
    let faults: Vec<_> = registers.iter().filter(|name| count(name) != 1).collect();
    assert!(faults.is_empty(), "what keeps guests apart in {faults:?}? Nothing is told, or two things are");
    assert_eq!(kept.len(), registers.len(), "csr.rs names only {registers:?} of {kept:?}");
}

mod the_lint_itself {
    use super::{names, switched};

    #[test]
    fn sees_rows_of_the_list() {
        let list = "registers! { /** Doc: A = 1. */ struct R(u) { a: A = f(u), /** B: C = D. */ b: B = u64::MAX, // x: X = 0,\n } }";
        let rows = [("a", "A"), ("b", "B")].map(|(field, csr)| (field.to_owned(), csr.to_owned()));
        assert_eq!(switched(list), rows);
    }

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
