#include "attacks.h"
#include "csr.h"
#include "imsic.h"
#include "irqchip_registers.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "run.h"
#include "sbi.h"
#include "timer.h"

const char *const attack_names[] = { "none", "restarts", "ipis", "fences", "page-fences", "plic", "aplic", "imsic", "flood", "newlines", "wakes",
    "spaces", "changes", "windows", "views", "texts", "fault", NULL };
enum { NONE, RESTARTS, IPIS, FENCES, PAGE_FENCES, PLIC, APLIC, IMSIC, FLOOD, NEWLINES, WAKES, SPACES, CHANGES, WINDOWS, VIEWS, TEXTS, FAULT };

#define PLIC_CONTEXTS 32 /* two for each of as many vCPUs as a guest can have */
#define APLIC_SOURCES 31 /* a word of them */
#define IDENTITIES 63 /* those that every interrupt file has */
#define AWAKE_US 20 /* at most twice that before its time, who faults waits in a loop */

static void nothing(struct vcpu *v, uint64_t turn)
{
    (void)v, (void)turn;
}

/* The first one starts the others, which stop at once. */
static void restarts(struct vcpu *v, uint64_t turn)
{
    if (v->index == 0)
        sbi_hart_start(vcpus[turn % vcpu_count]->id, start_address(), (uintptr_t)&vcpus[turn % vcpu_count]->start);
    else
        sbi_hart_stop();
}

static void ipis(struct vcpu *v, uint64_t turn)
{
    (void)v, (void)turn;
    sbi_send_ipi(0, UINT64_MAX);
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
}

static void fences(struct vcpu *v, uint64_t turn)
{
    (void)v;
    if (turn & 1)
        sbi_remote_fence_i(0, UINT64_MAX);
    else
        sbi_remote_sfence_vma(0, UINT64_MAX, 0, UINT64_MAX);
}

/* Sixteen pages: as many as a hypervisor may take one by one. */
static void page_fences(struct vcpu *v, uint64_t turn)
{
    (void)turn;
    sbi_call5(SBI_RFENCE, SBI_RFENCE_VMA_ASID, 0, UINT64_MAX, any(v), 16 * PAGE, any(v) & 0xffff);
}

/* Switches a source on and off in all contexts at once, and all of them with it: by its priority. */
static void plic(struct vcpu *v, uint64_t turn)
{
    volatile uint32_t *registers = (volatile uint32_t *)irqchips[0].base;
    volatile uint8_t *uart = (volatile uint8_t *)UART_BASE;
    if (turn == 0) {
        for (unsigned context = 0; context < PLIC_CONTEXTS; context++) {
            registers[(0x2000 + context * 0x80) / 4] = 1u << 10;
            registers[(0x200000 + context * 0x1000) / 4] = 0;
        }
        uart[1] = 2; /* transmitter empty */
    }
    registers[10] = turn & 7;
    registers[(0x200000 + (2 * v->index + 1) * 0x1000) / 4] = turn >> 3 & 7; /* its own, in S-mode */
}

/* Where vCPUs have interrupt files: its own listens to everything. */
static void open_file(void)
{
    csr_write(CSR_SISELECT, IMSIC_EIE(0));
    csr_write(CSR_SIREG, UINT64_MAX);
    csr_write(CSR_SISELECT, IMSIC_EIDELIVERY);
    csr_write(CSR_SIREG, 1);
}

/* Whole words that change all sources of a guest, each at every store: those of its virtual devices, which anybody may make pending here. Where they are messages,
 * one more to another vCPU each time, and all are claimed. */
static void aplic(struct vcpu *v, uint64_t turn)
{
    volatile uint32_t *registers = (volatile uint32_t *)irqchips[0].base;
    bool has_files = irqchip_count > 1;
    if (turn == 0) {
        if (has_files)
            open_file();
        registers[0] = 1u << 8; /* domaincfg.IE */
        for (unsigned source = 1; source <= APLIC_SOURCES; source++) {
            registers[source] = 1; /* detached */
            registers[0x3000 / 4 + source] = (source % vcpu_count) << 18 | source; /* its priority, or its identity */
        }
    }
    registers[0x4000 / 4 + 8 * v->index] = turn >> 4 & 1; /* its own idelivery */
    registers[(turn & 1 ? 0x1e00 : 0x1f00) / 4] = UINT32_MAX; /* setie, clrie */
    registers[(turn & 2 ? 0x1c00 : 0x1d00) / 4] = UINT32_MAX; /* setip, in_clrip */
    if (!has_files)
        return;
    registers[0x3000 / 4] = (turn % vcpu_count) << 18 | (turn % IDENTITIES + 1); /* genmsi */
    csr_swap(CSR_STOPEI, 0);
}

/* Messages to everybody, of every identity, from who switches its own file on and off, and claims what it has got. */
static void imsic(struct vcpu *v, uint64_t turn)
{
    if (turn == 0)
        open_file();
    *(volatile uint32_t *)(irqchips[1].base + (v->index + turn) % vcpu_count * IMSIC_FILE_SIZE) = turn / vcpu_count % IDENTITIES + 1;
    csr_write(CSR_SIREG, turn >> 4 & 1);
    csr_swap(CSR_STOPEI, 0);
}

static void flood(struct vcpu *v, uint64_t turn)
{
    static const char text[] = "0123456789abcdef";
    (void)v, (void)turn;
    sbi_call(SBI_DBCN, SBI_DBCN_WRITE, sizeof text - 1, (uintptr_t)text, 0);
}

static void newlines(struct vcpu *v, uint64_t turn)
{
    (void)v, (void)turn;
    *(volatile uint8_t *)UART_BASE = '\n';
}

/* Sleeps for so short that it may be woken before its hart has found something else to do. */
static void wakes(struct vcpu *v, uint64_t turn)
{
    timer_set(read_time() + 1 + (turn & 31));
    csr_write(sie, 1ul << IRQ_TIMER | 1ul << IRQ_SOFTWARE);
    if (vcpu_count > 1 && turn & 1)
        sbi_send_ipi(1, vcpus[(v->index + turn / 2) % vcpu_count]->id);
    wait_for_interrupt();
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
}

static attack_step *const steps[] = {
    nothing, restarts, ipis, fences, page_fences, plic, aplic, imsic, flood, newlines, wakes,
    attack_spaces, attack_changes, attack_windows, attack_views, attack_texts, nothing,
};

/* `fault`: a store that is nobody's, when `time` is `phase_us` behind a whole millisecond of the machine's. */
static void fault_at(uint64_t end)
{
    uint64_t period = us_to_ticks(1000), at = end / period * period + plan.phase;
    /* Several of them that were busy all the time would keep each other from the hart when theirs has come. */
    while (read_time() + us_to_ticks(2 * AWAKE_US) < at)
        sleep_us(AWAKE_US);
    while (read_time() < at)
        ;
    *(volatile uint64_t *)(machine.memory_base + machine.memory_size) = 0;
}

void attack(struct vcpu *v, unsigned which, uint64_t end)
{
    if (which == FAULT) {
        if (v->index == 0)
            fault_at(end);
        return;
    }
    /* Whoever is started again goes on where it was. */
    while (read_time() < end)
        steps[which](v, v->done++);
    csr_write(satp, 0);
}
