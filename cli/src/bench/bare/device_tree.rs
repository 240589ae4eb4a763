//! Makes QEMU's device tree one of the shape that a guest of Ainori gets: harts, memory, interrupt controller, serial port.
//! A bare Linux that also looks for PCI, flash and virtio devices would do more work than the guest it is compared with.
//!
//! Structure block as in the Devicetree Specification 0.4, 5.4: nodes that aren't wanted become `FDT_NOP` tokens.
use miette::{Result, miette};

const MAGIC: u32 = 0xd00d_feed;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROP: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;

/// Nodes, with or without a unit address, that no guest of Ainori has. The firmware needs clint, test, poweroff, reboot.
const FOREIGN: [&str; 7] = ["platform-bus", "pmu", "fw-cfg", "flash", "rtc", "virtio_mmio", "pci"];

/// Takes the foreign devices out of a flattened device tree.
pub fn without_foreign_devices(mut tree: Vec<u8>) -> Result<Vec<u8>> {
    strip(&mut tree).ok_or_else(|| miette!("QEMU's device tree is damaged"))?;
    Ok(tree)
}

fn strip(tree: &mut [u8]) -> Option<()> {
    if word(tree, 0)? != MAGIC {
        return None;
    }
    let mut at = word(tree, 8)? as usize; // off_dt_struct
    let mut depth = 0u32;
    // Begin and depth of the foreign node that we are in.
    let mut foreign: Option<(usize, u32)> = None;
    loop {
        let token = at;
        at += 4;
        match word(tree, token)? {
            BEGIN_NODE => {
                let rest = tree.get(at..)?;
                let name = &rest[..rest.iter().position(|byte| *byte == 0)?];
                at = (at + name.len() + 1).next_multiple_of(4);
                let plain = name.split(|byte| *byte == b'@').next()?;
                if foreign.is_none() && FOREIGN.iter().any(|foreign| foreign.as_bytes() == plain) {
                    foreign = Some((token, depth));
                }
                depth += 1;
            }
            END_NODE => {
                depth = depth.checked_sub(1)?;
                if let Some((begin, _)) = foreign.take_if(|(_, own)| *own == depth) {
                    for bytes in tree.get_mut(begin..at)?.chunks_exact_mut(4) {
                        bytes.copy_from_slice(&NOP.to_be_bytes());
                    }
                }
            }
            PROP => at = (at + 8 + word(tree, at)? as usize).next_multiple_of(4),
            NOP => {}
            END => return Some(()),
            _ => return None,
        }
    }
}

fn word(tree: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(tree.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(structure: &[u8]) -> Vec<u8> {
        let mut tree = vec![0; 12];
        tree[..4].copy_from_slice(&MAGIC.to_be_bytes());
        tree[8..12].copy_from_slice(&12u32.to_be_bytes());
        tree.extend_from_slice(structure);
        tree
    }

    #[test]
    fn foreign_nodes_become_nops() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
        let begin = |name: &[u8]| [&words(&[BEGIN_NODE])[..], name].concat();
        let soc = [begin(b"soc\0"), words(&[PROP, 2, 0]), b"xy\0\0".to_vec()].concat();
        let serial = [begin(b"serial@1\0\0\0\0"), words(&[END_NODE])].concat();
        let pci = [begin(b"pci@3000\0\0\0\0"), begin(b"bridge\0\0"), words(&[END_NODE, END_NODE])].concat();
        let ends = words(&[END_NODE, END]);
        let stripped = without_foreign_devices(tree(&[&soc[..], &pci, &serial, &ends].concat())).unwrap();
        let nops = words(&vec![NOP; pci.len() / 4]);
        assert_eq!(stripped, tree(&[&soc[..], &nops, &serial, &ends].concat()));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        assert!(without_foreign_devices(vec![0; 64]).is_err());
        assert!(without_foreign_devices(tree(&BEGIN_NODE.to_be_bytes())).is_err());
    }
}
