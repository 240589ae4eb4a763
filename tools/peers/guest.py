"""A guest as every peer gets it: one flat image of entry stub, device tree, program and RAM disk, and the tree itself.

The tree has the shape of the one that Ainori gives (docs/guests.md): harts with the extensions of QEMU's rv64, memory, interrupt controller, serial port,
`rng-seed`. So Linux does the same work everywhere.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
GUESTS = TOP / ".cache/guests"
LINUX = GUESTS / "linux/Image"
INITRD = GUESTS / "linux/initramfs.cpio.gz"
MICRO = GUESTS / "linux/micro.cpio.gz"
FREERTOS = GUESTS / "freertos/freertos.elf"
COST = GUESTS / "probes/cost.elf"

BASE = 0x8000_0000
TREE_AT = 0x10_0000  # from BASE
LINUX_AT = 0x20_0000
ELF_AT = 0x40_0000
INITRD_AT = 0x240_0000

# What QEMU's rv64 has and a guest can use everywhere. Of what `henvcfg` switches only block operations: not all peers offer page-based memory types
# (QEMU's rv64 has none) or A and D bits that harts write.
EXTENSIONS = (
    "i m a f d c zic64b zicbom zicbop zicboz ziccamoa ziccif zicclsm ziccrse zicntr zicsr zifencei zihintntl zihintpause zmmul za64rs zaamo "
    "zalrsc zawrs zfa zca zcd zba zbb zbc zbs ssccptr sscounterenw sstc sstvala sstvecd ssu64xl svvptc"
).split()

LINUX_ARGS = "console=ttyS0 quiet cryptomgr.notests initcall_blacklist=jent_mod_init,load_system_certificate_list,init_kprobe_trace"


class Guest:
    """A program with its arguments: `kind` is linux, freertos or cost."""

    def __init__(self, name, program, args, vcpus, memory_mb, initrd=None):
        self.name, self.program, self.args = name, pathlib.Path(program), args
        self.vcpus, self.memory, self.initrd = vcpus, memory_mb << 20, initrd

    def is_linux(self):
        return self.initrd is not None


def linux(job, vcpus, loops):
    return Guest("linux", LINUX, f"{LINUX_ARGS} ainori.run={job} ainori.loops={loops}", vcpus, 512, INITRD)


def micro():
    """Linux on one hart, with the loops of the experiment `memory` (experiments/memory.toml), as many of each."""
    loops = "ainori.getpid=10000 ainori.pipe=2000 ainori.fork=100 ainori.exec=50"
    return Guest("linux", LINUX, f"{LINUX_ARGS} ainori.run=micro {loops}", 1, 512, MICRO)


def freertos(args):
    return Guest("freertos", FREERTOS, args, 1, 16)


def cost(args, vcpus):
    return Guest("cost", COST, args, vcpus, 16)


def _cpus(guest, irqchip, without):
    extensions = [name for name in EXTENSIONS if name not in without]
    if irqchip == "aia":  # else Linux leaves the IMSIC alone, and has no serial port
        extensions.insert(extensions.index("ssccptr"), "ssaia")
    single = "".join(name for name in extensions if len(name) == 1)
    isa = "rv64" + "_".join([single, *(name for name in extensions if len(name) > 1)])
    names = ", ".join(f'"{name}"' for name in extensions)
    return "".join(
        f"""
        cpu@{i} {{
            device_type = "cpu"; reg = <{i}>; status = "okay"; compatible = "riscv"; mmu-type = "riscv,sv57";
            riscv,isa-base = "rv64i"; riscv,isa-extensions = {names}; riscv,isa = "{isa}";
            riscv,cbom-block-size = <64>; riscv,cboz-block-size = <64>; riscv,cbop-block-size = <64>;
            cpu{i}: interrupt-controller {{ #interrupt-cells = <1>; interrupt-controller; compatible = "riscv,cpu-intc"; }};
        }};"""
        for i in range(guest.vcpus)
    )


def _plic(guest, at):
    contexts = " ".join(f"&cpu{i} 11 &cpu{i} 9" for i in range(guest.vcpus))
    return f"""
        irqchip: plic@{at:x} {{
            compatible = "sifive,plic-1.0.0", "riscv,plic0"; reg = <0 {at:#x} 0 0x600000>; riscv,ndev = <95>;
            #interrupt-cells = <1>; #address-cells = <0>; interrupt-controller; interrupts-extended = <{contexts}>;
        }};""", "10"


def _aia(guest):
    contexts = " ".join(f"&cpu{i} 9" for i in range(guest.vcpus))
    return f"""
        imsics: imsics@28000000 {{
            compatible = "qemu,imsics", "riscv,imsics"; reg = <0 0x28000000 0 {guest.vcpus * 0x1000:#x}>; riscv,num-ids = <255>;
            #interrupt-cells = <0>; #msi-cells = <0>; interrupt-controller; msi-controller; interrupts-extended = <{contexts}>;
        }};
        irqchip: aplic@d000000 {{
            compatible = "qemu,aplic", "riscv,aplic"; reg = <0 0xd000000 0 0x8000>; riscv,num-sources = <96>; msi-parent = <&imsics>;
            #interrupt-cells = <2>; #address-cells = <0>; interrupt-controller;
        }};""", "10 4"


def tree(guest, irqchip, seed, without=(), serial_interrupts=True, begin=0, plic=0xC00_0000):
    """The guest's device tree, flattened. Its image is put at BASE + `begin`."""
    controller, source = _aia(guest) if irqchip == "aia" else _plic(guest, plic)
    initrd = ""
    if guest.initrd:
        start = BASE + begin + INITRD_AT
        end = start + guest.initrd.stat().st_size
        initrd = f"linux,initrd-start = <0 {start:#x}>; linux,initrd-end = <0 {end:#x}>;"
    interrupts = f"interrupt-parent = <&irqchip>; interrupts = <{source}>;" if serial_interrupts else ""
    rng = " ".join(f"{(seed * 0x9E37_79B9 + i * 0x85EB_CA6B) & 0xFFFF_FFFF:#x}" for i in range(1, 17))
    source = f"""/dts-v1/;
/ {{
    #address-cells = <2>; #size-cells = <2>; compatible = "riscv-virtio"; model = "ainori,peers";
    chosen {{ bootargs = "{guest.args}"; stdout-path = "/soc/serial@10000000"; rng-seed = <{rng}>; {initrd} }};
    memory@80000000 {{ device_type = "memory"; reg = <0 {BASE:#x} 0 {guest.memory:#x}>; }};
    cpus {{ #address-cells = <1>; #size-cells = <0>; timebase-frequency = <10000000>; {_cpus(guest, irqchip, without)} }};
    soc {{
        #address-cells = <2>; #size-cells = <2>; compatible = "simple-bus"; ranges;
        {controller}
        serial@10000000 {{ compatible = "ns16550a"; reg = <0 0x10000000 0 0x100>; clock-frequency = <3686400>; {interrupts} }};
    }};
}};
"""
    return subprocess.run(["dtc", "-q", "-I", "dts", "-O", "dtb"], input=source.encode(), stdout=subprocess.PIPE, check=True).stdout


def flat(program):
    """A program's bytes as they lie in memory, and where they begin, from BASE."""
    if program.suffix != ".elf":
        return program.read_bytes(), LINUX_AT
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["riscv64-unknown-elf-objcopy", "-O", "binary", program, out.name], check=True)
        return pathlib.Path(out.name).read_bytes(), ELF_AT


def image(guest, tree_bytes, begin=0):
    """All of the guest in one piece, to be put at BASE + `begin` and entered there with the hart's number in a0."""
    program, at = flat(guest.program)
    if not guest.is_linux():
        at -= begin  # it is linked for one address
    stub = [
        0x0000_0297,  # auipc t0, 0
        0x337 | TREE_AT,  # lui t1, ...
        0x0062_85B3,  # add a1, t0, t1
        0x337 | at,  # lui t1, ...
        0x0062_82B3,  # add t0, t0, t1
        0x0002_8067,  # jr t0
    ]
    parts = [(0, struct.pack("<6I", *stub)), (TREE_AT, tree_bytes), (at, program)]
    if guest.initrd:
        parts.append((INITRD_AT, guest.initrd.read_bytes()))
    whole = bytearray(max(start + len(data) for start, data in parts))
    for start, data in parts:
        whole[start : start + len(data)] = data
    if guest.is_linux() and at + struct.unpack_from("<Q", program, 16)[0] > INITRD_AT:
        raise SystemExit("the kernel is too large for the RAM disk's place in tools/peers/guest.py")
    return bytes(whole)


def archive(folder, files, out):
    """A RAM disk of the files in a folder, the same bytes whenever it is made: the times and numbers in it are read by who boots, and that takes time."""
    for name in files:
        os.utime(folder / name, (0, 0), follow_symlinks=False)
    pack = ["cpio", "--create", "--quiet", "--format=newc", "--reproducible", "--owner=0:0"]
    subprocess.run(pack, cwd=folder, input="\n".join(files).encode(), stdout=out, check=True)


def git(folder, *arguments):
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)} in {folder} fails: {done.stderr.strip()}")
    return done.stdout.strip()


def copy(name, source, tree, has, edits=()):
    """A clone of a peer's checkout, for what is built of it: `tree`, with edits of what stands there once, (file, from, to). Gives commit and day.

    It is what that commit has. It is made again if the checkout has another one, or if it isn't whole. `has`: a file by which the peer is known.
    """
    source = pathlib.Path(source)
    if not (source / has).is_file():
        raise SystemExit(f"{source} has no {has}: FOLDER has to be a git checkout of {name} (docs/peers.md, \"Taking them again\")")
    if git(source, "rev-parse", "--show-prefix"):
        raise SystemExit(f"{source} is part of another git checkout: FOLDER has to be one of {name}")
    if git(source, "status", "--porcelain", "--untracked-files=no"):
        raise SystemExit(f"{source} has changes that aren't committed: commit them there, as results name the commit")
    for file, before, _ in edits:
        if (source / file).read_text().count(before) != 1:
            raise SystemExit(f"{source / file} doesn't have {before!r} once: tools/peers is made for another version of {name}")
    version = git(source, "log", "-1", "--format=%H %cs")
    made_of, wanted = tree.with_suffix(".made-of"), repr((version, edits))
    if not (tree.exists() and made_of.exists() and made_of.read_text() == wanted):
        made_of.unlink(missing_ok=True)
        shutil.rmtree(tree, ignore_errors=True)
        git(".", "clone", "--quiet", str(source.resolve()), str(tree))
        for file, before, after in edits:
            (tree / file).write_text((tree / file).read_text().replace(before, after))
        made_of.write_text(wanted)
    return version


def elf_sizes(elf, image):
    """Bytes of what is in memory: instructions and constants (and those of them in sections named after boot or init), initialised data, zeroed
    data; and of the file that is booted. By sections: `size` takes a stack that nobody writes to before it is entered for text."""
    sizes = {"text": 0, "boot": 0, "data": 0, "bss": 0, "image": image}
    listing = subprocess.run(["riscv64-unknown-elf-readelf", "-SW", elf], capture_output=True, text=True, check=True).stdout
    for name, kind, size, flags in re.findall(r"\] (\S+) +(\S+) +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +([WAXMSILGTCEDop]*) ", listing):
        if "A" not in flags:
            continue
        key = "bss" if kind == "NOBITS" else "text" if "X" in flags or "W" not in flags else "data"
        sizes[key] += int(size, 16)
        if key == "text" and re.search("boot|init", name):
            sizes["boot"] += int(size, 16)
    return sizes
