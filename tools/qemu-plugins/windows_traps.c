/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a hart is in S-mode: scause, and for an instruction that may not be executed below, what stval says it is. */
#include "windows.h"

#include <stdio.h>
#include <string.h>

enum { ILLEGAL = 2, VIRTUAL_INSTRUCTION = 22, SYSTEM = 0x73, SATP = 0x180, SRET = 0x10200073, WFI = 0x10500073 };

static struct {
    void *pc, *priv, *scause, *sepc, *stval, *hgatp;
} registers;

bool traps_find_registers(void)
{
    struct {
        const char *name;
        void **handle;
    } wanted[] = {
        {"hgatp", &registers.hgatp}, /* not on a hart without the H extension; all others are needed */
        {"pc", &registers.pc}, {"priv", &registers.priv}, {"scause", &registers.scause}, {"sepc", &registers.sepc}, {"stval", &registers.stval},
    };
    const struct g_array *list = qemu_plugin_get_registers();
    const struct qemu_plugin_register *all = list->data;
    for (unsigned i = 0; i < list->length; i++)
        for (size_t j = 0; j < sizeof wanted / sizeof *wanted; j++)
            if (!strcmp(all[i].name, wanted[j].name)) *wanted[j].handle = all[i].handle;
    for (size_t j = 1; j < sizeof wanted / sizeof *wanted; j++)
        if (!*wanted[j].handle) {
            fprintf(stderr, "windows: refused: this QEMU shows no register %s\n", wanted[j].name);
            return false;
        }
    return true;
}

void *traps_privilege(void) { return registers.priv; }
uint64_t traps_pc(void) { return read_register(registers.pc); }
bool traps_have_virtual(void) { return registers.hgatp; }

static enum trap trap_of_instruction(uint32_t insn)
{
    if (insn == SRET) return INSTRUCTION_SRET;
    if (insn == WFI) return INSTRUCTION_WFI;
    if ((insn & 0x7f) != SYSTEM) return INSTRUCTION_OTHER;
    if (insn >> 12 & 3) return insn >> 20 == SATP ? INSTRUCTION_SATP : INSTRUCTION_CSR;
    /* SFENCE.VMA, and Svinval's SINVAL.VMA, SFENCE.W.INVAL and SFENCE.INVAL.IR */
    bool is_fence = (insn & 0x7fff) == SYSTEM && (insn >> 25 == 0x09 || insn >> 25 == 0x0b || insn >> 25 == 0x0c);
    return is_fence ? INSTRUCTION_SFENCE : INSTRUCTION_OTHER;
}

enum trap trap_now(uint64_t *pc)
{
    uint64_t cause = read_register(registers.scause), code = cause & ~(1ull << 63);
    *pc = read_register(registers.sepc);
    if (cause >> 63) return INTERRUPTS + (code & 15);
    if (code == ILLEGAL || code == VIRTUAL_INSTRUCTION) return trap_of_instruction((uint32_t)read_register(registers.stval));
    return EXCEPTIONS + (code & 31);
}

const char *trap_name(unsigned trap)
{
    static const char *const names[TRAPS] = {
        "fetch-misaligned", "fetch-access", NULL, "breakpoint", "load-misaligned", "load-access", "store-misaligned", "store-access",
        "ecall-u", "ecall-s", "ecall-vs", "ecall-m", "fetch-page", "load-page", NULL, "store-page",
        [20] = "fetch-guest-page", "load-guest-page", NULL, "store-guest-page",
        [INTERRUPTS + 1] = "software", "software-vs", [INTERRUPTS + 5] = "timer", "timer-vs",
        [INTERRUPTS + 9] = "external", "external-vs", [INTERRUPTS + 12] = "external-guest", "counter-overflow",
        [INSTRUCTION_SATP] = "satp", "sfence.vma", "sret", "wfi", "csr", "other-instruction",
    };
    return names[trap];
}
