//! Makes QEMU's device tree one of the shape that a guest of Ainori gets: harts, memory, interrupt controller, serial port.
//! A bare Linux that also looks for PCI, flash and virtio devices would do more work than the guest it is compared with.
use dtoolkit::{
    Node,
    fdt::FdtNode,
    fdt_mut::{FdtBuffer, FdtMut, FdtNodeMut},
};
use miette::{Result, miette};

/// Nodes, with or without a unit address, that no guest of Ainori has. The firmware needs clint, test, poweroff, reboot.
const FOREIGN: [&str; 7] = ["platform-bus", "pmu", "fw-cfg", "flash", "rtc", "virtio_mmio", "pci"];

/// Takes the foreign devices out of a flattened device tree. All else stays where it is.
pub fn without_foreign_devices(mut tree: Vec<u8>) -> Result<Vec<u8>> {
    let mut fdt =
        FdtMut::from_slice(&mut tree).map_err(|error| miette!("QEMU's device tree is damaged: {error}"))?;
    strip(fdt.root_mut());
    Ok(tree)
}

fn strip<B: FdtBuffer>(mut node: FdtNodeMut<'_, B>) {
    let is_foreign = |child: &FdtNode| FOREIGN.contains(&child.name_without_address());
    let foreign: Vec<_> =
        node.as_read_only().children().filter(is_foreign).map(|child| child.name().to_owned()).collect();
    for name in foreign {
        node.remove_child(&name);
    }
    let mut children = node.children_mut();
    while let Some(child) = children.next() {
        strip(child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
    use dtoolkit::{Property, fdt::Fdt};

    /// A tree whose nodes have these paths, each behind its parent.
    fn tree(paths: &[&str]) -> Vec<u8> {
        let mut tree = DeviceTree::new();
        for path in paths {
            let (parent, name) = path.rsplit_once('/').unwrap();
            let own_path = DeviceTreeProperty::new("path", *path).unwrap();
            let node = DeviceTreeNode::builder(name).unwrap().property(own_path).build();
            tree.find_node_mut(&format!("{parent}/")).unwrap().add_child(node);
        }
        tree.to_dtb()
    }

    #[test]
    fn foreign_nodes_are_taken_out_wherever_they_are() {
        let before = tree(&[
            "/cpus",
            "/flash@2000",
            "/soc",
            "/soc/pci@3000",
            "/soc/pci@3000/bridge",
            "/soc/serial@1",
            "/soc/virtio_mmio@1",
            "/soc/virtio_mmio@2",
            "/soc/pcie@4",
            "/pmu",
        ]);
        let after = without_foreign_devices(before.clone()).unwrap();
        assert_eq!(after.len(), before.len());
        let fdt = Fdt::new(&after).unwrap();
        let names = |path: &str| -> Vec<String> {
            fdt.find_node(path).unwrap().children().map(|child| child.name().to_owned()).collect()
        };
        assert_eq!(names("/"), ["cpus", "soc"]);
        assert_eq!(names("/soc"), ["serial@1", "pcie@4"]);
        assert_eq!(
            fdt.find_node("/soc/serial@1").unwrap().property("path").unwrap().value(),
            b"/soc/serial@1\0"
        );
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        assert!(without_foreign_devices(vec![0; 64]).is_err());
        let whole = tree(&["/soc", "/soc/serial@1"]);
        for length in 0..whole.len() {
            assert!(without_foreign_devices(whole[..length].to_vec()).is_err(), "{length} bytes");
        }
    }

    proptest::proptest! {
        /// The library says that what it has checked can't make it panic.
        #[test]
        fn no_damage_makes_it_panic(at in 0usize..400, value: u8, more in 0usize..400, other: u8) {
            let mut damaged = tree(&["/cpus", "/soc", "/soc/pci@3000", "/soc/pci@3000/bridge", "/soc/serial@1"]);
            let length = damaged.len();
            damaged[at % length] = value;
            damaged[more % length] = other;
            let _ = without_foreign_devices(damaged);
        }
    }
}
