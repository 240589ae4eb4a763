//! Looking things up in a flattened device tree (devicetree specification, 2 and 5).
use alloc::vec::Vec;

use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::standard::Reg;
use dtoolkit::{Node, Property};

use crate::Range;

#[inline(never)]
pub fn value<'a>(node: &FdtNode<'a>, name: &str) -> Option<&'a [u8]> {
    node.property(name)?.value_as().ok()
}

#[inline(never)]
pub fn cell(node: &FdtNode<'_>, name: &str) -> Option<u32> {
    cells(value(node, name)?).next()
}

pub fn cells(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|cell| u32::from_be_bytes(*cell))
}

pub fn text<'a>(node: &FdtNode<'a>, name: &str) -> Option<&'a str> {
    core::str::from_utf8(value(node, name)?.strip_suffix(b"\0")?).ok()
}

/// The node at `path`, which may also be a name in `/aliases`.
#[inline(never)]
pub fn find<'a>(tree: Fdt<'a>, path: &str) -> Option<FdtNode<'a>> {
    tree.find_node(path).or_else(|| tree.find_node(text(&tree.find_node("/aliases")?, path)?))
}

/// Nodes that lie deeper are left out: nothing that is looked for does.
const DEEPEST: usize = 16;

/// All nodes below the root, in the order of the tree.
pub struct AllNodes<'a> {
    /// What is still to come: children of the root, of one of these, and so on.
    children: [Option<<FdtNode<'a> as Node>::Children<'a>>; DEEPEST],
    depth: usize,
}

impl<'a> AllNodes<'a> {
    pub fn of(tree: Fdt<'a>) -> Self {
        let mut all = Self { children: [const { None }; DEEPEST], depth: 0 };
        if let Some(first) = all.children.first_mut() {
            *first = Some(tree.root().children());
        }
        all
    }
}

impl<'a> Iterator for AllNodes<'a> {
    type Item = FdtNode<'a>;

    #[inline(never)]
    fn next(&mut self) -> Option<FdtNode<'a>> {
        // BOUND: the levels of the tree. Only at boot.
        loop {
            let Some(node) = self.children.get_mut(self.depth)?.as_mut()?.next() else {
                self.depth = self.depth.checked_sub(1)?;
                continue;
            };
            if let Some(below) = self.children.get_mut(self.depth + 1) {
                *below = Some(node.children());
                self.depth += 1;
            }
            return Some(node);
        }
    }
}

/// Is the node compatible with one of `names`?
#[inline(never)]
pub fn is_compatible(node: &FdtNode<'_>, names: &[&str]) -> bool {
    node.compatible().is_some_and(|mut own| own.any(|name| names.contains(&name)))
}

/// The first node that is.
#[inline(never)]
pub fn compatible<'a>(tree: Fdt<'a>, names: &[&str]) -> Option<FdtNode<'a>> {
    AllNodes::of(tree).find(|node| is_compatible(node, names))
}

/// Is what the node stands for switched on?
#[inline(never)]
pub fn is_on(node: &FdtNode<'_>) -> bool {
    text(node, "status").is_none_or(|status| matches!(status, "okay" | "ok"))
}

/// The register ranges that are not empty.
pub fn registers<'a>(node: &FdtNode<'a>) -> impl Iterator<Item = Range> + use<'a> {
    let regs = node.reg().ok().flatten();
    regs.into_iter().flatten().filter_map(range)
}

#[inline(never)]
pub fn range(reg: Reg<'_>) -> Option<Range> {
    let (start, size) = (reg.address::<u64>().ok()?, reg.size::<u64>().ok()?);
    (size != 0).then_some(Range { start, end: start.checked_add(size)? })
}

/// Where the registers begin.
#[inline(never)]
pub fn base(node: &FdtNode<'_>) -> Option<u64> {
    registers(node).next().map(|range| range.start)
}

/// The hart interrupts that a controller drives, in its own order: (phandle of the hart's controller, number).
pub fn targets(node: &FdtNode<'_>) -> Vec<(u32, u32)> {
    let words: Vec<u32> =
        value(node, "interrupts-extended").map(|value| cells(value).collect()).unwrap_or_default();
    words.as_chunks().0.iter().map(|[phandle, number]| (*phandle, *number)).collect()
}
