"""KVM: Debian's kernel, the same as the guests', is the host on the machine's harts, and kvmtool makes the guests.

The host is built here: its initramfs is that of the Linux guest, with kvm.ko, kvmtool, `chrt`, an init of its own and the guests' images in front of it.
"""
import lzma
import pathlib
import shutil
import struct
import subprocess
import tempfile

import guest as guests

PACKAGES = guests.TOP / ".cache/debian-riscv64"
# Where kvmtool puts a kernel, from guest.BASE, and its PLIC.
LOAD_AT = 0x20_0000
PLIC_AT = 0x800_0000
# The only instruction of kvm.ko that writes hcounteren (csrwi hcounteren, TM), and what it becomes: TM and IR.
HCOUNTEREN_TM, HCOUNTEREN_TM_IR = struct.pack("<I", 0x6061_5073), struct.pack("<I", 0x6063_5073)
FIFO_PRIORITY = 50
# Without the PMU's driver, which would stop the counters that the probe reads.
HOST_ARGS = f"{guests.LINUX_ARGS},pmu_sbi_devinit rdinit=/kvm-host"
HOST_MEMORY = "2048M"
APPLETS = ("insmod", "mkfifo", "taskset")
# Of kvm.ko, by variant. A vCPU that waits is polled for up to half a millisecond, unless it is told not to.
OPTIONS = {"no-poll": "halt_poll_ns=0"}


def _unpack(package, folder):
    """Unpacks a Debian package that is among those of a set (guests/packages)."""
    (deb,) = PACKAGES.glob(package)
    subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
    return deb.name.removesuffix("_riscv64.deb")


def _start(guest, harts):
    """How the host starts a guest (kvm-host). An RTOS gets what KVM has to offer it: priority, and its hart."""
    mask = sum(1 << hart for hart in harts)
    first = "" if guest.is_linux() else f" chrt -f {FIFO_PRIORITY} taskset {mask:x}"
    return f"{guest.name} {guest.vcpus} {guest.memory >> 20}{first}\n"


class Peer:
    """`variant` is empty, for KVM as it comes, or no-poll. Without `sizes`: KVM is part of a kernel, whose size says nothing beside a hypervisor's."""

    VARIANTS = tuple(OPTIONS)
    CASES = ("cost", "ping", "alone", "shared", "micro")

    def __init__(self, source, work, variant):
        self.work, self.options = work, OPTIONS.get(variant, "")
        self.changes = ["hcounteren.IR = 1, in kvm.ko: guests may read instret, which the probe counts with"]
        tree = work / "source"
        version = guests.copy("kvmtool", source, tree, "riscv/kvm-cpu.c")
        self.host = tree / "host"  # in the copy, so that a new one has no host of before
        names = self.host / "version"
        if not names.exists():
            self._build(tree, names)
        self.version = f"{names.read_text()}, kvmtool {version}"

    def _build(self, tree, names):
        """kvmtool, chrt and kvm.ko, in the folder that the host's initramfs is made of."""
        subprocess.run([guests.TOP / "guests/packages", "kvm"], check=True)
        libfdt = self.work / "libfdt"
        shutil.rmtree(self.host, ignore_errors=True)
        (self.host / "bin").mkdir(parents=True)
        with tempfile.TemporaryDirectory() as folder:
            unpacked = pathlib.Path(folder)
            _unpack("kvm/libfdt-dev_*.deb", unpacked)
            _unpack("kvm/util-linux_*.deb", unpacked)
            version = _unpack("linux/linux-image-*.deb", unpacked)
            libfdt.mkdir(exist_ok=True)
            for file in (unpacked / "usr/lib/riscv64-linux-gnu/libfdt.a", *(unpacked / "usr/include").glob("*fdt*.h")):
                shutil.copy(file, libfdt)
            shutil.copy(unpacked / "usr/bin/chrt", self.host / "bin")
            (module,) = unpacked.glob("usr/lib/modules/*/kernel/arch/riscv/kvm/kvm.ko.xz")
            code = lzma.decompress(module.read_bytes())
        if code.count(HCOUNTEREN_TM) != 1:
            raise SystemExit("kvm.ko doesn't write hcounteren as tools/peers/kvm.py expects")
        (self.host / "kvm.ko").write_bytes(code.replace(HCOUNTEREN_TM, HCOUNTEREN_TM_IR))
        make = ["make", "-s", "-C", tree, "ARCH=riscv", "CROSS_COMPILE=riscv64-linux-gnu-", f"LIBFDT_DIR={libfdt}", "WERROR=0", "lkvm-static"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(tree / "lkvm-static", self.host / "bin/lkvm")
        subprocess.run(["riscv64-linux-gnu-strip", self.host / "bin/lkvm"], check=True)
        for name in APPLETS:
            (self.host / "bin" / name).symlink_to("busybox")
        names.write_text(version)

    def is_partitioned(self):
        return False

    def command(self, name, placed, harts):
        files = []
        for index, (guest, _) in enumerate(placed):
            tree = guests.tree(guest, "plic", 1 + index, serial_interrupts=False, begin=LOAD_AT, plic=PLIC_AT)
            (self.host / f"{guest.name}.bin").write_bytes(guests.image(guest, tree, LOAD_AT))
            files.append(f"{guest.name}.bin")
        (self.host / "guests").write_text("".join(_start(guest, on) for guest, on in placed))
        rtos_harts = sorted({hart for guest, on in placed if not guest.is_linux() for hart in on})
        (self.host / "rtos-harts").write_text("".join(f"{hart}\n" for hart in rtos_harts))
        (self.host / "kvm-options").write_text(f"{self.options}\n")
        shutil.copy(pathlib.Path(__file__).parent / "kvm-host", self.host)
        files += ["kvm-host", "kvm-options", "rtos-harts", "guests", "kvm.ko", "bin", "bin/chrt", "bin/lkvm", *(f"bin/{name}" for name in APPLETS)]
        archive = self.work / f"{name}.cpio"
        with open(archive, "wb") as out:
            guests.archive(self.host, files, out)
            out.write(guests.INITRD.read_bytes())
        machine = ["-M", "virt,aclint=on", "-cpu", "rv64", "-smp", harts, "-m", HOST_MEMORY]
        return [*machine, "-kernel", guests.LINUX, "-initrd", archive, "-append", HOST_ARGS]
