/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the model has to know of a hart: its mode, the registers that translate, and memory.
 *
 * QEMU swaps satp and vsatp when V changes: what it shows as satp while V is 1 is vsatp, and what it then shows as vsatp is
 * old. HS-mode's satp can't be seen while V is 1, and can't change.
 */
#include "tlb.h"

#include <stdio.h>
#include <string.h>

#include "qemu_internals.h"

enum { GENERAL = 32, MSTATUS_TVM = 1 << 20, HSTATUS_VTVM = 1 << 20 };

static struct {
    void *satp, *vsatp, *hgatp, *priv, *mstatus, *hstatus, *pc, *general[GENERAL];
} registers;

const char *machine_missing_symbol(void)
{
    if (!cpu_physical_memory_rw) return "cpu_physical_memory_rw";
    if (!cpu_physical_memory_is_io) return "cpu_physical_memory_is_io";
    return cpu_dump_state ? NULL : "cpu_dump_state";
}

bool machine_find_registers(void)
{
    static const char *const general[GENERAL] = {
        "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4", "a5",
        "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
    struct {
        const char *name;
        void **handle;
        bool needed;
    } wanted[] = {
        {"satp", &registers.satp, true},       {"priv", &registers.priv, true},      {"mstatus", &registers.mstatus, true},
        {"pc", &registers.pc, true},
        {"vsatp", &registers.vsatp, false},    {"hgatp", &registers.hgatp, false},   {"hstatus", &registers.hstatus, false},
    };
    const struct g_array *list = qemu_plugin_get_registers();
    const struct qemu_plugin_register *all = list->data;
    for (unsigned i = 0; i < list->length; i++) {
        for (size_t j = 0; j < sizeof wanted / sizeof *wanted; j++)
            if (!strcmp(all[i].name, wanted[j].name)) *wanted[j].handle = all[i].handle;
        for (int j = 0; j < GENERAL; j++)
            if (!strcmp(all[i].name, general[j])) registers.general[j] = all[i].handle;
    }
    for (size_t j = 0; j < sizeof wanted / sizeof *wanted; j++)
        if (wanted[j].needed && !*wanted[j].handle) {
            fprintf(stderr, "tlb: refused: this QEMU shows no register %s\n", wanted[j].name);
            return false;
        }
    for (int j = 1; j < GENERAL; j++)
        if (!registers.general[j]) {
            fprintf(stderr, "tlb: refused: this QEMU shows no register %s\n", general[j]);
            return false;
        }
    return true;
}

enum mode machine_mode(void) { return mode_now(registers.priv, registers.hgatp); }

/* The MMU modes of QEMU 10.0's RISC-V: 0 is U, 1 is S, 2 is S with SUM, 3 is M; 4 in addition is two stages. */
enum mode machine_access_mode(qemu_plugin_access access)
{
    static const unsigned privilege[] = {0, 1, 1, 3};
    return mode_of(privilege[access & 3], access & 4);
}

void machine_read_translation(struct hart *hart, bool virtual)
{
    uint64_t satp = read_register(registers.satp), hgatp = read_register(registers.hgatp);
    uint64_t vsatp = virtual ? satp : read_register(registers.vsatp);
    if (virtual) satp = hart->satp;
    hart->switches += (satp != hart->satp) + (vsatp != hart->vsatp) + (hgatp != hart->hgatp);
    hart->satp = satp;
    hart->vsatp = vsatp;
    hart->hgatp = hgatp;
    hart->registers_stale = false;
}

bool machine_fence_traps(enum fence_kind kind, enum mode mode)
{
    switch (mode) {
    case MODE_M: return kind != SFENCE_VMA && !registers.hgatp;
    case MODE_S:
        if (kind != SFENCE_VMA && !registers.hgatp) return true;
        return kind != HFENCE_VVMA && (read_register(registers.mstatus) & MSTATUS_TVM);
    case MODE_VS: return kind != SFENCE_VMA || (read_register(registers.hstatus) & HSTATUS_VTVM);
    default: return true;
    }
}

uint64_t machine_pc(void) { return read_register(registers.pc); }

uint64_t machine_general_register(unsigned number) { return number ? read_register(registers.general[number]) : 0; }

/* Page tables are in memory; whatever else a broken table points to isn't touched. */
bool machine_read_memory(uint64_t physical, uint64_t *value)
{
    if (cpu_physical_memory_is_io(physical)) return false;
    cpu_physical_memory_rw(physical, value, sizeof *value, false);
    return true;
}
