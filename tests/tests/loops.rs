//! A lint: each loop that the hypervisor can run after boot says in a comment how long it can get.
//!
//! The hypervisor runs to completion with interrupts off, so whoever wants the core waits until a loop ends. A comment `// BOUND: ...` right
//! above the loop, or above the statement that it is part of, says after how many rounds that is, or which preemption point is
//! among them. A function whose documentation says `Only at boot.` or `Only at the end of the run` need not: nobody waits for it.
//!
//! This test reads the sources that make the kernel, as `cfg` has them in any of its builds, and lists the loops that say nothing. Whether a comment
//! is true, it can't tell; that it isn't forgotten, it can.
//!
//! A loop is `for`, `while` and `loop`, and a call of a method that runs through an iterator or a slice ([`Loops::is_loop`]). What it doesn't see:
//! recursion, loops in assembly, and loops in functions of `core`.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ainori_tests::checkout;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, Meta, Token};

/// What runs only before the first guest, so that nobody waits for it, and why that is so.
const BOOT_ONLY: [(&str, &str); 25] = [
    ("kernel/src/boot/mod.rs", "it ends with the start of the harts"),
    ("kernel/src/boot/channels.rs", "as all of boot"),
    ("kernel/src/boot/files.rs", "as all of boot"),
    ("kernel/src/boot/guests.rs", "as all of boot"),
    ("kernel/src/boot/machine.rs", "as all of boot"),
    ("kernel/src/boot/cores.rs", "as all of boot"),
    ("kernel/src/boot/interrupts.rs", "a core's start"),
    ("kernel/src/boot/sharing.rs", "what it finds out is kept"),
    ("kernel/src/memory.rs", "allocates, which panics after boot"),
    ("crates/board/src/board.rs", "reads the board's device tree, whose memory the first guest may get"),
    ("crates/board/src/irqchip.rs", "reads the board's device tree, whose memory the first guest may get"),
    ("crates/board/src/imsic.rs", "reads the board's device tree, whose memory the first guest may get"),
    ("crates/board/src/tree.rs", "reads the board's device tree, whose memory the first guest may get"),
    ("crates/board/src/isa.rs", "what guests are told of the harts is in their device trees"),
    ("crates/board/src/range.rs", "finds the memory that guests get"),
    (
        "kernel/src/arch/riscv/clear.rs",
        "a guest's memory before its first life; for the next, `guest/program.rs` clears it in pieces",
    ),
    ("kernel/src/guest/loader.rs", "allocates; the next lives are loaded by `guest/program.rs`, in pieces"),
    ("kernel/src/guest/device_tree.rs", "allocates; the tree is kept for the next lives"),
    ("crates/manifest/src/blob.rs", "the system is read once"),
    ("crates/manifest/src/blob/spaces.rs", "the system is read once"),
    ("crates/manifest/src/config.rs", "the system is read once"),
    ("crates/manifest/src/layout.rs", "places what `guest/loader.rs` loads"),
    ("crates/sched/src/presets.rs", "the policy is chosen once"),
    ("crates/trace/src/mask.rs", "the mask comes with the system"),
    ("crates/space/src/space.rs", "the kernel lays tables out at boot, and doesn't change them"),
];

/// What is wrong with a source, and in which line.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// A loop without a bound.
    Unbounded(usize),
    /// A bound without a loop: the loop has gone, or the comment is not where it belongs.
    Stray(usize),
}

/// The loops of one file.
struct Loops<'a> {
    lines: Vec<&'a str>,
    /// First lines of the statements, arms and items that enclose what is visited.
    enclosing: Vec<usize>,
    unbounded: BTreeSet<usize>,
    /// Lines of the comments that belong to a loop.
    used: BTreeSet<usize>,
    /// In a function that doesn't run while guests do.
    exempt: bool,
    count: usize,
}

const BOUND: &str = "// BOUND: ";

impl<'a> Loops<'a> {
    fn of(text: &'a str) -> Self {
        let file = syn::parse_file(text).expect("the source is Rust");
        let mut loops = Self {
            lines: text.lines().collect(),
            enclosing: Vec::new(),
            unbounded: BTreeSet::new(),
            used: BTreeSet::new(),
            exempt: false,
            count: 0,
        };
        loops.visit_file(&file);
        loops
    }

    fn faults(&self) -> Vec<Fault> {
        let is_bound = |line: &str| line.trim_start().starts_with(BOUND.trim_end());
        let bounds = (1..).zip(&self.lines).filter(|(_, line)| is_bound(line));
        let stray = bounds.map(|(number, _)| number).filter(|number| !self.used.contains(number));
        self.unbounded.iter().copied().map(Fault::Unbounded).chain(stray.map(Fault::Stray)).collect()
    }

    /// The line of the bound in the comment that ends right above a line.
    fn bound_above(&self, line: usize) -> Option<usize> {
        let above = self.lines[..line - 1].iter().enumerate().rev();
        let mut comment = above.take_while(|(_, text)| text.trim_start().starts_with("//"));
        comment.find(|(_, text)| text.trim_start().starts_with(BOUND)).map(|(index, _)| index + 1)
    }

    fn note(&mut self, span: Span) {
        let line = span.start().line;
        self.count += 1;
        if self.exempt {
            return;
        }
        let statement = self.enclosing.last().copied();
        match [Some(line), statement].into_iter().flatten().find_map(|line| self.bound_above(line)) {
            Some(bound) => _ = self.used.insert(bound),
            None => _ = self.unbounded.insert(line),
        }
    }

    /// Does a method with this name, called with so many arguments, run through all that there is? The numbers tell the methods of iterators and
    /// slices from others, such as `Ord::min` and `VcpuSet::contains`.
    fn is_loop(call: &syn::ExprMethodCall) -> bool {
        let is_range = |e: &Expr| matches!(e, Expr::Paren(p) if matches!(*p.expr, Expr::Range(_)));
        match (call.method.to_string().as_str(), call.args.len()) {
            (
                "min" | "max" | "sum" | "product" | "count" | "last" | "collect" | "sort" | "to_vec"
                | "concat",
                0,
            ) => true,
            (
                "for_each" | "try_for_each" | "any" | "all" | "find" | "find_map" | "position" | "rposition",
                1,
            ) => true,
            (
                "min_by_key" | "max_by_key" | "min_by" | "max_by" | "reduce" | "partition" | "nth" | "eq",
                1,
            ) => {
                // `eq` with a reference compares two values.
                !(call.method == "eq" && matches!(call.args[0], Expr::Reference(_)))
            }
            ("extend" | "fill" | "copy_from_slice" | "clone_from_slice", 1) => true,
            ("fold" | "try_fold", 2) => true,
            ("contains", 1) => matches!(call.args[0], Expr::Reference(_)) && !is_range(&call.receiver),
            _ => false,
        }
    }

    /// What stands between the brackets of a macro: expressions, as far as one can tell; if not, at least no loop is missed.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let list = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(expressions) = list.parse2(tokens.clone()) {
            return expressions.iter().for_each(|e| self.visit_expr(e));
        }
        if let Ok(block) = syn::Block::parse_within.parse2(tokens.clone()) {
            return block.iter().for_each(|statement| self.visit_stmt(statement));
        }
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Ident(word) if ["for", "while", "loop"].iter().any(|k| word == k) => {
                    self.note(word.span());
                }
                _ => {}
            }
        }
    }

    fn item<T: Spanned>(&mut self, item: &T, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        if is_compiled(attributes) {
            let outer = self.exempt;
            self.exempt |= is_exempt(attributes);
            self.within(item, visit);
            self.exempt = outer;
        }
    }

    fn within<T: Spanned>(&mut self, outer: &T, visit: impl FnOnce(&mut Self)) {
        self.enclosing.push(outer.span().start().line);
        visit(self);
        self.enclosing.pop();
    }
}

impl Visit<'_> for Loops<'_> {
    fn visit_item(&mut self, item: &Item) {
        self.item(item, attributes(item), |s| visit::visit_item(s, item));
    }

    fn visit_impl_item_fn(&mut self, method: &syn::ImplItemFn) {
        self.item(method, &method.attrs, |s| visit::visit_impl_item_fn(s, method));
    }

    fn visit_stmt(&mut self, statement: &syn::Stmt) {
        self.within(statement, |s| visit::visit_stmt(s, statement));
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        self.within(arm, |s| visit::visit_arm(s, arm));
    }

    fn visit_field_value(&mut self, field: &syn::FieldValue) {
        self.within(field, |s| visit::visit_field_value(s, field));
    }

    fn visit_expr_for_loop(&mut self, e: &syn::ExprForLoop) {
        self.note(e.for_token.span);
        visit::visit_expr_for_loop(self, e);
    }

    fn visit_expr_while(&mut self, e: &syn::ExprWhile) {
        self.note(e.while_token.span);
        visit::visit_expr_while(self, e);
    }

    fn visit_expr_loop(&mut self, e: &syn::ExprLoop) {
        self.note(e.loop_token.span);
        visit::visit_expr_loop(self, e);
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        if Self::is_loop(call) {
            self.note(call.method.span());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, e: &syn::ExprPath) {
        let name = e.path.segments.last().map(|last| last.ident.to_string());
        if name.is_some_and(|name| ["write_bytes", "copy_nonoverlapping"].contains(&name.as_str())) {
            self.note(e.path.span());
        }
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.visit_tokens(call.tokens.clone());
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        _ => &[],
    }
}

/// Does the documentation of an item say that it runs only before the first guest or after the last one?
fn is_exempt(attributes: &[Attribute]) -> bool {
    let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
    let text =
        attributes.iter().filter(is_doc).filter_map(|attribute| attribute.meta.require_name_value().ok());
    let text: String = text.map(|doc| doc.value.to_token_stream().to_string().to_lowercase()).collect();
    text.contains("only at boot.") || text.contains("only at the end of the run")
}

/// What cargo knows of the kernel.
fn kernel() -> toml::Table {
    let manifest = fs::read_to_string(checkout("kernel/Cargo.toml")).expect("the kernel has a manifest");
    manifest.parse().expect("it is TOML")
}

/// Do these attributes leave an item in some build of the kernel?
fn is_compiled(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .filter(|a| a.path().is_ident("cfg"))
        .all(|a| can_be(&a.parse_args().expect("a condition"), true))
}

/// Can a condition be this in a build of the kernel? That can have any of the kernel's features (its crates' are named after them), and is neither a test nor loom's.
fn can_be(condition: &Meta, wanted: bool) -> bool {
    static FEATURES: LazyLock<Vec<String>> =
        LazyLock::new(|| kernel()["features"].as_table().expect("a table").keys().cloned().collect());
    let list = match condition {
        Meta::List(list) => list,
        Meta::Path(_) => return !wanted,
        Meta::NameValue(pair) => {
            let value = pair.value.to_token_stream().to_string();
            return !wanted || FEATURES.iter().any(|name| value == format!("{name:?}"));
        }
    };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let mut parts = parts.expect("a list of conditions").into_iter();
    match (list.path.get_ident().map(ToString::to_string).as_deref(), wanted) {
        (Some("not"), _) => parts.all(|part| can_be(&part, !wanted)),
        (Some("all"), true) | (Some("any"), false) => parts.all(|part| can_be(&part, wanted)),
        (Some("all"), false) | (Some("any"), true) => parts.any(|part| can_be(&part, wanted)),
        (other, _) => panic!("a condition of a kind that isn't known here: {other:?}"),
    }
}

/// The files that can be a module, as its attributes `path` name them, in some builds or in all.
fn named_files(attributes: &[Attribute]) -> Vec<String> {
    let of = |meta: &Meta| match meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(file), .. }) => Some(file.value()),
            _ => None,
        },
        _ => None,
    };
    let list = Punctuated::<Meta, Token![,]>::parse_terminated;
    let conditional = attributes.iter().filter(|a| a.path().is_ident("cfg_attr"));
    let conditional = conditional.flat_map(|a| a.parse_args_with(list).expect("a condition and attributes"));
    conditional.chain(attributes.iter().map(|a| a.meta.clone())).filter_map(|meta| of(&meta)).collect()
}

/// A source and the modules that it declares, as any build of the kernel has them.
fn with_modules(file: &Path, sources: &mut BTreeSet<PathBuf>) {
    let file = file.canonicalize().expect("a module has a file");
    let parsed =
        syn::parse_file(&fs::read_to_string(&file).expect("it can be read")).expect("the source is Rust");
    let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("a source has a name");
    let beside = file.parent().expect("a source is in a folder");
    let folder = if ["main", "lib", "mod"].contains(&stem) { beside.to_owned() } else { beside.join(stem) };
    for item in &parsed.items {
        if let Item::Mod(module) = item
            && module.content.is_none()
            && is_compiled(&module.attrs)
        {
            let names = named_files(&module.attrs);
            names.iter().for_each(|name| with_modules(&beside.join(name), sources));
            let own = [format!("{}.rs", module.ident), format!("{}/mod.rs", module.ident)];
            let own = own.iter().map(|name| folder.join(name)).find(|file| file.exists());
            assert!(own.is_some() || !names.is_empty(), "{} has no file", module.ident);
            own.iter().for_each(|own| with_modules(own, sources));
        }
    }
    sources.insert(file);
}

/// All sources of the project that make the kernel.
fn sources() -> BTreeSet<PathBuf> {
    let mut sources = BTreeSet::new();
    with_modules(&checkout("kernel/src/main.rs"), &mut sources);
    for name in kernel()["dependencies"].as_table().expect("a table").keys() {
        if let Some(name) = name.strip_prefix("ainori-") {
            with_modules(&checkout(&format!("crates/{name}/src/lib.rs")), &mut sources);
        }
    }
    sources
}

#[test]
fn each_loop_of_the_hypervisor_says_how_long_it_can_get() {
    let (mut faults, mut boot_only, mut count) = (Vec::new(), Vec::new(), 0);
    for source in sources() {
        let text = fs::read_to_string(&source).expect("it was read before");
        let name = source.strip_prefix(checkout("")).expect("a part of the checkout").display().to_string();
        let loops = Loops::of(&text);
        if BOOT_ONLY.iter().any(|(file, _)| *file == name) {
            assert!(loops.count > 0, "{name} has no loops, so it need not be listed as boot-only");
            boot_only.push(name);
            continue;
        }
        count += loops.count;
        faults.extend(loops.faults().iter().map(|fault| match fault {
            Fault::Unbounded(line) => {
                format!("{name}:{line}: a loop without a comment `{BOUND}...` right above it")
            }
            Fault::Stray(line) => format!("{name}:{line}: a bound without a loop right below it"),
        }));
    }
    println!("{count} loops");
    assert_eq!(
        boot_only.len(),
        BOOT_ONLY.len(),
        "of those listed as boot-only, there are only {boot_only:?}"
    );
    assert!(count > 50, "only {count} loops were found");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

mod the_lint_itself {
    use super::{Fault, Loops};

    fn faults(text: &str) -> Vec<Fault> {
        Loops::of(text).faults()
    }

    #[test]
    fn sees_each_kind_of_loop() {
        for body in [
            "for id in ids {}",
            "while more() {}",
            "let x = loop { break 1; };",
            "ids.iter().for_each(drop);",
            "if ids.iter().any(|id| id == 1) {}",
            "let least = ids.iter().min();",
            "assert!(ids.iter().all(is_good));",
            "println!(\"{}\", ids.iter().sum::<u32>());",
            "unsafe { core::ptr::write_bytes(at, 0, size) };",
            "to.copy_from_slice(from);",
            "if known.contains(&id) {}",
        ] {
            assert_eq!(faults(&format!("fn f() {{\n    {body}\n}}")), [Fault::Unbounded(2)], "{body}");
            assert_eq!(faults(&format!("fn f() {{\n    // BOUND: short.\n    {body}\n}}")), [], "{body}");
        }
        assert_eq!(faults("macro_rules! m {\n    ($x:expr) => {\n while $x {} };\n}"), [Fault::Unbounded(3)]);
    }

    #[test]
    fn takes_nothing_else_for_one() {
        for body in [
            "a.min(b);",
            "set.contains(id);",
            "(1..9).contains(&n);",
            "Fence::all();",
            "word.any();",
            "bus::find(a);",
        ] {
            assert_eq!(faults(&format!("fn f() {{ {body} }}")), [], "{body}");
        }
        assert_eq!(faults("#[cfg(test)]\nmod tests { fn f() { loop {} } }"), []);
        assert_eq!(faults("/// Makes it: only at boot.\nfn f() { loop {} }"), []);
        assert_eq!(faults("/// Only at boot.\nfn f() {}\nfn g() {\n loop {} }"), [Fault::Unbounded(4)]);
        assert_eq!(faults("#[cfg(not(loom))]\nfn f() {\n loop {} }"), [Fault::Unbounded(3)]);
        for some_build in [
            "feature = \"no-h\"",
            "not(feature = \"no-h\")",
            "any(test, feature = \"large\")",
            "not(all(loom, not(test)))",
        ] {
            assert_eq!(
                faults(&format!("#[cfg({some_build})]\nfn f() {{\n loop {{}} }}")),
                [Fault::Unbounded(3)],
                "{some_build}"
            );
        }
        assert_eq!(faults("#[cfg(feature = \"host\")]\nfn f() { loop {} }"), []);
        assert_eq!(faults("#[cfg(all(test, feature = \"large\"))]\nfn f() { loop {} }"), []);
    }

    #[test]
    fn wants_the_bound_right_above() {
        let far = "fn f() {\n    // BOUND: short.\n    begin();\n    for id in ids {}\n}";
        assert_eq!(faults(far), [Fault::Unbounded(4), Fault::Stray(2)]);
        let inner = "fn f() {\n    // BOUND: short.\n    for a in x {\n        for b in y {}\n    }\n}";
        assert_eq!(faults(inner), [Fault::Unbounded(4)]);
        let of_statement = "fn f() {\n    // BOUND: short,\n    // really.\n    let x = y\n        .iter()\n        .max();\n}";
        assert_eq!(faults(of_statement), []);
        let of_call =
            "fn f() {\n    let x = y\n        .iter()\n        // BOUND: short.\n        .max();\n}";
        assert_eq!(faults(of_call), []);
    }
}
