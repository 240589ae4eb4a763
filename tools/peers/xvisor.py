"""Xvisor: a monolithic hypervisor with a priority scheduler. It is built by its own build system, as configured for generic 64-bit RISC-V."""
import os
import pathlib
import subprocess
import tempfile

import guest as guests

# What guests print is in a buffer of an emulated serial port until it is dumped: first when so much virtual time has passed since they were started, when
# FreeRTOS has measured. (`vserial bind`, which would print at once, polls at a guest's priority. With the board's own port, whose interrupts Xvisor's
# driver gets, Linux was seen to stand still as soon as its init printed.)
PRINT_AFTER_MS = {"cost": 1000, "ping": 300, "idle": 2700, "alone": 1000, "shared": 2900, "micro": 4000}
AGAIN_MS, AGAIN = 250, 160  # and then as often: beside FreeRTOS Linux takes up to 15 s to boot
PRIORITY = {True: 1, False: 3}  # of a vCPU of Linux, of others; 7 is the highest, 4 the shell's
ISA = "rv64imafdc_sstc"  # it knows no other extensions of those that guests are told
# What it doesn't enable, or has trap without an answer of its own (WRS.NTO): a guest that is told of them gets an illegal instruction.
WITHOUT = ("zicbom", "zicboz", "zicbop", "zawrs")


def _guest(guest, harts):
    """The guest in Xvisor's own terms, flattened."""
    linux, affinity = guest.is_linux(), " ".join(map(str, harts))
    text = f"""/dts-v1/;
/ {{
    model = "virt64"; device_type = "guest"; sbi_version = <2>;
    vcpu_template {{
        device_type = "vcpu"; compatible = "riscv,generic"; riscv,isa = "{ISA}"; start_pc = <{guests.BASE:#x}>; poweroff;
        priority = <{PRIORITY[linux]}>; affinity = <{affinity}>;
    }};
    aspace {{
        guest_irq_count = <1024>;
        mem0 {{
            manifest_type = "real"; address_type = "memory"; guest_physical_addr = <{guests.BASE:#x}>; physical_size = <{guest.memory:#x}>;
            align_order = <21>; device_type = "alloced_ram";
        }};
        plic {{
            manifest_type = "virtual"; address_type = "memory"; guest_physical_addr = <0x0c000000>; physical_size = <0x4000000>;
            device_type = "pic"; compatible = "sifive,plic0"; parent_irq = <10>; num_irq = <95>; max_priority = <7>;
        }};
        uart0 {{
            manifest_type = "virtual"; address_type = "memory"; guest_physical_addr = <0x10000000>; physical_size = <0x1000>;
            device_type = "serial"; compatible = "ns16550a"; fifo_size = <8192>; interrupts = <10>;
        }};
    }};
}};
"""
    return subprocess.run(["dtc", "-q", "-I", "dts", "-O", "dtb"], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


class Peer:
    """`variant` is empty, for Xvisor as it comes, or no-yield: a vCPU that executes WFI sleeps at once, and doesn't yield 100 times before."""

    VARIANTS = ("no-yield",)
    CASES = ("sizes", "cost", "ping", "alone", "shared", "micro")

    def __init__(self, source, work, variant):
        self.work = work
        port, wait = "emulators/serial/ns16550.c", "core/vmm_vcpu_irq.c"
        edits = [(port, "2048, s)", "65536, s)")]
        self.changes = ["buffer of the emulated serial port: 65,536 bytes instead of 2,048, as nobody reads it before the end"]
        if variant:
            edits.append((wait, "WFI_YIELD_THRESHOLD\t100", "WFI_YIELD_THRESHOLD\t0"))
            self.changes.append("WFI_YIELD_THRESHOLD: 0 instead of 100")
        tree = work / "source"
        self.version = guests.copy("Xvisor", source, tree, wait, edits)
        self.image = tree / "build/vmm.bin"
        if not self.image.exists():
            make = ["make", "-s", "-C", tree, "CROSS_COMPILE=riscv64-linux-gnu-"]
            for target in (["ARCH=riscv", "generic-64b-defconfig"], []):
                subprocess.run([*make, *target], check=True, stdout=subprocess.DEVNULL)

    def is_partitioned(self):
        return False

    def command(self, name, placed, harts):
        with tempfile.TemporaryDirectory() as folder:
            disk = pathlib.Path(folder)
            script = []
            for index, (guest, on) in enumerate(placed):
                tree = guests.tree(guest, "plic", 1 + index, without=WITHOUT)
                (disk / f"{guest.name}.dtb").write_bytes(_guest(guest, on))
                (disk / f"{guest.name}.bin").write_bytes(guests.image(guest, tree))
                script += [f"vfs guest_fdt_load {guest.name} /{guest.name}.dtb {guest.vcpus}", f"guest create {guest.name}"]
                script += [f"vfs guest_load {guest.name} {guests.BASE:#x} /{guest.name}.bin"]
            script += [f"guest kick {guest.name}" for guest, _ in placed]
            dump = [f"vserial dump {guest.name}/uart0" for guest, _ in placed]
            script += [f"sleep msecs {PRINT_AFTER_MS[name]}", *dump, *[f"sleep msecs {AGAIN_MS}", *dump] * AGAIN]
            (disk / "boot.xscript").write_text("\n".join(script) + "\n")
            archive = self.work / f"{name}.cpio"
            with open(archive, "wb") as out:
                guests.archive(disk, sorted(os.listdir(disk)), out)
        arguments = 'vmm.bootcmd="vfs mount initrd /;vfs run /boot.xscript"'
        return ["-M", "virt,aclint=on", "-cpu", "rv64", "-smp", harts, "-m", "2048M", "-kernel", self.image, "-initrd", archive, "-append", arguments]

    def sizes(self):
        return guests.elf_sizes(self.image.with_suffix(".elf"), self.image.stat().st_size)
