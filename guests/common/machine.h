/* The machine that the guest runs on, as its device tree tells. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "fdt.h"

#define MAX_HARTS 64

struct hart {
    uint64_t id;                   /* as SBI and mhartid name it; ids need not be dense */
    uint32_t interrupt_controller; /* phandle of its cpu-intc node */
};

struct machine {
    struct fdt fdt;
    uint64_t timebase_hz; /* of `time` and stimecmp */
    uint64_t memory_base; /* first range of main memory, bytes */
    uint64_t memory_size;
    uint64_t boot_hart;        /* id */
    unsigned hart_count;       /* entries of `harts`; the boot hart is one of them */
    struct hart harts[MAX_HARTS];
    struct fdt_node boot_cpu;  /* where the boot hart's extensions are listed */
    bool has_sstc;             /* the boot hart's timer is stimecmp */
    const char *bootargs;      /* "" where there are none */
};

extern struct machine machine;

/* Fills `machine`. Ends the guest with a message if the tree lacks what every program needs. */
void machine_read(uint64_t boot_hart, const void *device_tree);

/* True if the boot hart has the extension, in lower case: "v", "sstc". */
bool machine_has(const char *extension);

/* Ends the guest with a message if the boot hart lacks the extension. `why`: what needs it. */
void machine_needs(const char *extension, const char *why);

/* Length of `ticks` of `time` in nanoseconds. */
uint64_t ticks_to_ns(uint64_t ticks);

/* Ticks of `time` in so many microseconds, rounded down. */
uint64_t us_to_ticks(uint64_t us);
