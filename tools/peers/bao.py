"""Bao: a static partitioning hypervisor. It is built by its own Makefile, with a configuration that is written here."""
import re
import subprocess

import guest as guests

# Where QEMU puts the guests' images: Bao wants them outside its own.
LOAD_AT = [0xC000_0000, 0xD000_0000]
MACHINES = {"plic": "virt,aclint=on", "aia": "virt,aia=aplic-imsic,aia-guests=1"}


def _vm(index, guest, harts, size):
    affinity = sum(1 << hart for hart in harts)
    return f"""
        {{
            .image = VM_IMAGE_LOADED({guests.BASE:#x}, {LOAD_AT[index]:#x}, {size:#x}),
            .entry = {guests.BASE:#x},
            .cpu_affinity = {affinity:#x},
            .platform = {{
                .cpu_num = {guest.vcpus},
                .region_num = 1,
                .regions = (struct vm_mem_region[]) {{ {{ .base = {guests.BASE:#x}, .size = {guest.memory:#x} }} }},
                .dev_num = 1,
                .devs = (struct vm_dev_region[]) {{ {{
                    .pa = 0x10000000, .va = 0x10000000, .size = 0x1000,
                    {".interrupt_num = 1, .interrupts = (irqid_t[]) { 10 }" if index == 0 else ".interrupt_num = 0"}
                }} }},
                .arch = {{ IRQCHIP }},
            }},
        }},"""


def configuration(placed, sizes, irqchip):
    chip = (
        ".irqc.plic.base = 0xc000000"
        if irqchip == "plic"
        else ".irqc.aia.aplic.base = 0xd000000, .irqc.aia.imsic.base = 0x28000000"
    )
    vms = "".join(_vm(i, guest, harts, size) for i, ((guest, harts), size) in enumerate(zip(placed, sizes)))
    return f"""#include <config.h>

#define IRQCHIP {chip}

struct config config = {{
    .vmlist_size = {len(placed)},
    .vmlist = (struct vm_config[]) {{{vms}
    }},
}};
"""


class Peer:
    """`variant` is empty, for the PLIC, or aia: the interrupt controller of the board, and of the guests."""

    VARIANTS = ("aia",)
    CASES = ("sizes", "cost", "ping", "alone", "shared", "micro")

    def __init__(self, source, work, variant):
        self.work, self.irqchip = work, variant or "plic"
        self.tree = work / "source"
        traps = "src/arch/riscv/vm.c"
        self.version = guests.copy("Bao", source, self.tree, traps, [(traps, "HCOUNTEREN_TM", "(HCOUNTEREN_TM | HCOUNTEREN_IR)")])
        self.changes = ["hcounteren.IR = 1: guests may read instret, which the probe counts with", "cpu_num of the board: 1 where a case has one hart"]

    def is_partitioned(self):
        return True

    def _make(self, name, text, harts):
        folder = self.work / "configurations"
        (folder / name).mkdir(parents=True, exist_ok=True)
        file = folder / name / "config.c"
        image = self.tree / f"bin/qemu-riscv64-virt/{name}/bao.bin"
        if not (file.exists() and file.read_text() == text and image.exists()):
            image.unlink(missing_ok=True)  # else one of before would be taken for it after an interruption
            file.write_text(text)
            board = self.tree / "src/platform/qemu-riscv64-virt/virt_desc.c"
            board.write_text(re.sub(r"\.cpu_num = \d+", f".cpu_num = {harts}", board.read_text()))
            chip = ["IRQC=PLIC", "IPIC=IPIC_ACLINT"] if self.irqchip == "plic" else ["IRQC=AIA"]
            command = ["make", "-s", "PLATFORM=qemu-riscv64-virt", f"CONFIG_REPO={folder}", f"CONFIG={name}", *chip]
            for target in (["clean"], []):
                subprocess.run([*command, *target], cwd=self.tree, check=True, stdout=subprocess.DEVNULL)
        return image

    def command(self, name, placed, harts):
        """QEMU's arguments. Bao's platform has 4 GiB, whatever is used of them."""
        images = []
        for index, (guest, _) in enumerate(placed):
            file = self.work / f"{name}-{guest.name}.bin"
            file.write_bytes(guests.image(guest, guests.tree(guest, self.irqchip, 1 + index, serial_interrupts=index == 0)))
            images.append(file)
        sizes = [file.stat().st_size for file in images]
        image = self._make(f"{name}-{self.irqchip}", configuration(placed, sizes, self.irqchip), harts)
        arguments = ["-M", MACHINES[self.irqchip], "-cpu", "rv64,svpbmt=on", "-smp", harts, "-m", "4096M", "-kernel", image]
        for file, address in zip(images, LOAD_AT):
            arguments += ["-device", f"loader,file={file},addr={address:#x},force-raw=on"]
        return arguments

    def sizes(self):
        text = configuration([(guests.cost("", 1), [0])], [0x1000], self.irqchip)
        image = self._make(f"sizes-{self.irqchip}", text, 4)
        return guests.elf_sizes(image.with_suffix(".elf"), image.stat().st_size)
