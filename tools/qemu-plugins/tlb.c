/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tlb.so: what translation would cost. Feeds the harts' fetches, loads and stores to models of TLBs, and counts the PTEs
 * that their walks read. README.md tells how to use it.
 *
 * Instructions are counted as paths.so counts them. The ITLB is asked at the begin of each translation block and where
 * a block comes to another page, not for each instruction: in between, the page is the one that was used last, and stays.
 *
 * QEMU's blocks belong to physical memory: one that was translated for a program is executed for another as well that has the same page elsewhere
 * (libc at a random address). So where a block is executed is asked each time, and isn't taken from its translation.
 */
#include "tlb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"
#include "this_hart.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

struct hart harts[MAX_HARTS];
unsigned n_harts;

static bool ended; /* nothing counts any more, though a few instructions may still be executed */
static bool waiting; /* nothing is modelled yet: the window that options.since names hasn't begun */
struct sums before;

enum { MODE_BITS = 3 };
#define NO_PAGE UINT64_MAX

static void forget_last(struct hart *hart) { hart->last[UNIT_ITLB] = hart->last[UNIT_DTLB] = NO_PAGE; }

/* `by` executes, `as` is the mode whose translation it is: another one with MPRV and HLV. Returns what the tables say, or
   NULL if no model had to look there. */
static const struct path *ask_models(struct hart *hart, uint64_t address, enum tlb_unit unit, enum mode by, enum mode as,
                                     struct access *access)
{
    bool virtual = as >= MODE_VS;
    uint64_t page = address >> PAGE_SHIFT << 1 | virtual;
    if (as == MODE_M || hart->last[unit] == page) return NULL;
    hart->last[unit] = page;
    *access = (struct access){
        .address = address,
        .regime = {virtual, virtual ? hart->vsatp : hart->satp, virtual ? hart->hgatp : 0},
        .unit = unit,
        .mode = by,
        .guest = virtual || options.supervisor_is_guest,
        .read = machine_read_memory,
    };
    for (unsigned i = 0; i < options.n_sets * options.n_kinds; i++) model_access(&hart->models[i], access);
    if (access->state == UNRESOLVED) {
        hart->unresolved++;
        hart->last[unit] = NO_PAGE; /* it isn't in any TLB: next time is a miss again */
    }
    return access->state == WALKED ? &access->path : NULL;
}

/* `data` is the address for which the block was translated. */
static void on_block(unsigned vcpu, void *data)
{
    (void)vcpu;
    harts[this_hart()].moved = machine_pc() - (uintptr_t)data;
}

/* `data` is a page's number, where its block was translated, and the mode in which it is fetched. */
static void on_fetch(unsigned vcpu, void *data)
{
    (void)vcpu;
    if (ended) return;
    struct hart *hart = &harts[this_hart()];
    struct access access;
    enum mode mode = (uintptr_t)data & ((1 << MODE_BITS) - 1);
    if (hart->registers_stale) {
        machine_read_translation(hart, mode >= MODE_VS);
        forget_last(hart);
    }
    if (waiting) return;
    uint64_t page = (uint64_t)(uintptr_t)data >> MODE_BITS << PAGE_SHIFT;
    ask_models(hart, page + hart->moved, UNIT_ITLB, mode, mode, &access);
}

static void *fetch_of(uint64_t address, enum mode mode)
{
    return (void *)(uintptr_t)(address >> PAGE_SHIFT << MODE_BITS | mode);
}

static void on_instruction(unsigned vcpu, void *mode)
{
    (void)vcpu;
    if (!ended) harts[this_hart()].instructions[(uintptr_t)mode]++;
}

static void on_memory(unsigned vcpu, uint32_t info, uint64_t address, void *mode)
{
    (void)vcpu;
    if (ended || waiting) return;
    struct hart *hart = &harts[this_hart()];
    struct access access;
    enum mode by = (uintptr_t)mode, as = machine_access_mode(info);
    hart->accesses[by]++;
    const struct path *path = ask_models(hart, address, UNIT_DTLB, by, as, &access);
    if (path) {
        const struct qemu_plugin_hwaddr *went = qemu_plugin_get_hwaddr(info, address);
        hart->checked++;
        if (!went || qemu_plugin_hwaddr_phys_addr(went) != path->physical) hart->wrong++;
    }
    uint64_t last = address + ((uint64_t)1 << qemu_plugin_mem_size_shift(info)) - 1;
    if ((address ^ last) >> PAGE_SHIFT) ask_models(hart, last, UNIT_DTLB, by, as, &access);
}

/* Before the instruction that may write satp, vsatp or hgatp: the next one finds what came of it. */
static void on_register_write(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    harts[this_hart()].registers_stale = true;
}

/* `data` is the mode and the instruction. Before it is executed, so whether it will be is looked up. */
static void on_fence(unsigned vcpu, void *data)
{
    (void)vcpu;
    if (ended || waiting) return;
    struct hart *hart = &harts[this_hart()];
    enum mode mode = (uintptr_t)data & ((1 << MODE_BITS) - 1);
    uint32_t insn = (uint32_t)((uintptr_t)data >> MODE_BITS);
    struct fence fence = {.virtual = mode == MODE_VS, .one_address = insn >> 15 & 31, .one_space = insn >> 20 & 31,
                          .vmid = hart->hgatp >> 44 & 0x3fff};
    if (!is_fence(insn, &fence.kind) || machine_fence_traps(fence.kind, mode)) return;
    fence.address = machine_general_register(insn >> 15 & 31);
    fence.space = machine_general_register(insn >> 20 & 31) & (fence.kind == HFENCE_GVMA ? 0x3fff : TAG_ASID_MASK);
    if (fence.kind == HFENCE_GVMA) fence.address <<= 2;
    for (unsigned i = 0; i < options.n_sets * options.n_kinds; i++) model_fence(&hart->models[i], &fence);
    hart->fences[mode][fence.kind][fence.one_address | fence.one_space << 1]++;
    forget_last(hart);
}

/* `data` is the immediate. */
static void on_mark(unsigned vcpu, void *data)
{
    (void)vcpu;
    int number = (int)(intptr_t)data;
    if (ended) return;
    if (waiting && number == options.since) {
        sum_up(&before);
        waiting = false;
    }
    windows_mark(number, waiting);
}

static bool is_mark(uint32_t insn, enum mode mode)
{
    return (insn & MARK_MASK) == MARK && (mode == MODE_U || mode == MODE_VU);
}

static void watch(struct qemu_plugin_insn *insn, enum mode mode, uint32_t bytes)
{
    enum fence_kind kind;
    if (is_fence(bytes, &kind))
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fence, QEMU_PLUGIN_CB_READS_REGS,
                                               (void *)((uintptr_t)bytes << MODE_BITS | mode));
    if (writes_translation(bytes))
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_register_write, QEMU_PLUGIN_CB_NO_REGS, NULL);
    qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)mode);
    qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS,
                                     QEMU_PLUGIN_MEM_READS | QEMU_PLUGIN_MEM_WRITES, (void *)(uintptr_t)mode);
}

static void end_count(void) { ended = true; }

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
    static bool found;
    (void)id;
    if (!found && !machine_find_registers()) exit(EXIT_FAILURE);
    found = true;
    enum mode mode = machine_mode(); /* a block is for one mode */
    uint64_t page = NO_PAGE, begin = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_READS_REGS, (void *)(uintptr_t)begin);
    for (size_t i = 0, n = qemu_plugin_tb_n_insns(tb); i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t first = qemu_plugin_insn_vaddr(insn), last = first + qemu_plugin_insn_size(insn) - 1;
        uint32_t bytes = 0;
        qemu_plugin_insn_data(insn, &bytes, sizeof bytes);
        bool marks = is_mark(bytes, mode);
        if (marks)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
                                                   (void *)(intptr_t)((int32_t)bytes >> 20));
        if (first >> PAGE_SHIFT != page)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fetch, QEMU_PLUGIN_CB_NO_REGS, fetch_of(first, mode));
        if ((first ^ last) >> PAGE_SHIFT)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fetch, QEMU_PLUGIN_CB_NO_REGS, fetch_of(last, mode));
        watch(insn, mode, bytes);
        enum fence_kind kind;
        page = is_fence(bytes, &kind) || writes_translation(bytes) || marks ? NO_PAGE : last >> PAGE_SHIFT;
    }
    end_watch(tb, end_count);
}

static void on_exit_of_qemu(plugin_id id, void *data)
{
    (void)id, (void)data;
    report();
}

static bool make_models(void)
{
    for (unsigned h = 0; h < n_harts; h++) {
        struct model *m = calloc((size_t)options.n_sets * options.n_kinds, sizeof *m);
        if (!m) return false;
        harts[h].models = m;
        harts[h].registers_stale = true;
        forget_last(&harts[h]);
        for (unsigned s = 0; s < options.n_sets; s++)
            for (unsigned k = 0; k < options.n_kinds; k++)
                if (!model_init(m++, options.kinds[k], &options.sets[s].sizes, options.assumed_levels)) return false;
    }
    return true;
}

static bool is_refused(const struct qemu_info *info)
{
    const char *missing = machine_missing_symbol();
    if (!missing) missing = end_missing_symbol();
    if (!missing && !qemu_get_cpu) missing = "qemu_get_cpu";
    if (!info->system_emulation || strcmp(info->target_name, "riscv64") != 0 || info->system.max_vcpus > MAX_HARTS)
        fprintf(stderr, "tlb: refused: needs qemu-system-riscv64 with at most %d harts\n", MAX_HARTS);
    else if (missing)
        fprintf(stderr, "tlb: refused: this QEMU doesn't export %s; use QEMU 10.0 as Debian builds it\n", missing);
    else return false;
    return true;
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    if (is_refused(info)) return -1;
    for (int i = 0; i < argc; i++)
        if (!read_tlb_option(argv[i])) return -1;
    if (!finish_tlb_options()) return -1;
    n_harts = (unsigned)info->system.max_vcpus;
    waiting = options.since;
    single_hart = n_harts == 1;
    if (!make_models()) {
        fprintf(stderr, "tlb: no memory for the models\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
