#include "machine.h"
#include <string.h>
#include "trap.h"

#define NS_PER_SECOND 1000000000ul
#define US_PER_SECOND 1000000ul

struct machine machine;

/* Takes over what a /cpus/cpu node says. */
static void read_cpu(const struct fdt *fdt, struct fdt_node *node)
{
    uint64_t id, size;
    const char *status = fdt_string(fdt, node, "status");
    if ((status && strcmp(status, "okay") != 0 && strcmp(status, "ok") != 0) || !fdt_reg(fdt, node, &id, &size)
        || machine.hart_count == MAX_HARTS)
        return;
    struct hart *hart = &machine.harts[machine.hart_count++];
    hart->id = id;
    if (id == machine.boot_hart)
        machine.boot_cpu = *node;
    struct fdt_node child = *node;
    if (fdt_next(fdt, &child) && child.depth > node->depth && fdt_is_named(&child, "interrupt-controller"))
        fdt_cell(fdt, &child, "phandle", 0, &hart->interrupt_controller);
}

void machine_read(uint64_t boot_hart, const void *device_tree)
{
    machine.boot_hart = boot_hart;
    machine.bootargs = "";
    if (!fdt_open(&machine.fdt, device_tree))
        fail("no device tree at 0x%lx: the loader must pass its address in a1", (uint64_t)(uintptr_t)device_tree);

    const struct fdt *fdt = &machine.fdt;
    bool in_cpus = false;
    for (struct fdt_node node = { 0 }; fdt_next(fdt, &node);) {
        if (node.depth == 2) {
            in_cpus = fdt_is_named(&node, "cpus");
            uint32_t hz;
            const char *bootargs;
            if (in_cpus && fdt_cell(fdt, &node, "timebase-frequency", 0, &hz))
                machine.timebase_hz = hz;
            else if (fdt_is_named(&node, "memory") && machine.memory_size == 0)
                fdt_reg(fdt, &node, &machine.memory_base, &machine.memory_size);
            else if (fdt_is_named(&node, "chosen") && (bootargs = fdt_string(fdt, &node, "bootargs")))
                machine.bootargs = bootargs;
        } else if (node.depth == 3 && in_cpus && fdt_is_named(&node, "cpu")) {
            read_cpu(fdt, &node);
        }
    }
    if (machine.timebase_hz == 0)
        fail("the device tree has no /cpus/timebase-frequency");
    if (machine.memory_size == 0)
        fail("the device tree has no /memory node");
    if (machine.boot_cpu.depth == 0)
        fail("the device tree has no /cpus node for the boot hart %lu", boot_hart);
    machine.has_sstc = machine_has("sstc");
}

/* "rv64imac_zicsr_sstc": single letters follow the base, longer names stand behind underscores. */
static bool isa_string_has(const char *isa, const char *extension)
{
    size_t length = strlen(extension);
    if (length == 1)
        return strlen(isa) > 4 && memchr(isa + 4, extension[0], strcspn(isa + 4, "_")) != NULL;
    for (const char *p = strchr(isa, '_'); p; p = strchr(p, '_')) {
        p++;
        if (strncmp(p, extension, length) == 0 && (p[length] == '_' || p[length] == '\0'))
            return true;
    }
    return false;
}

bool machine_has(const char *extension)
{
    const char *isa = fdt_string(&machine.fdt, &machine.boot_cpu, "riscv,isa");
    return fdt_list_has(&machine.fdt, &machine.boot_cpu, "riscv,isa-extensions", extension)
        || (isa && isa_string_has(isa, extension));
}

void machine_needs(const char *extension, const char *why)
{
    if (!machine_has(extension))
        fail("hart %lu has no extension %s, which is needed: %s", machine.boot_hart, extension, why);
}

uint64_t ticks_to_ns(uint64_t ticks)
{
    return ticks / machine.timebase_hz * NS_PER_SECOND + ticks % machine.timebase_hz * NS_PER_SECOND / machine.timebase_hz;
}

uint64_t us_to_ticks(uint64_t us)
{
    return us / US_PER_SECOND * machine.timebase_hz + us % US_PER_SECOND * machine.timebase_hz / US_PER_SECOND;
}
