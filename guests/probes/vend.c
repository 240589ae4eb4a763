/* Each hart sleeps until the next whole period, then loads all vector and floating-point registers, may fence/ipi all, may print; ends at `at_us`, each `every_us` again. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 512
#define ALL_HARTS UINT64_MAX
void fp_load(const uint64_t f[32], uint64_t fcsr);
void vector_load(const uint8_t *v, uint64_t elements, uint64_t vcsr);
static struct secondary secondaries[MAX_HARTS];
static uint64_t stacks[MAX_HARTS][STACK_WORDS] __attribute__((aligned(16)));
static uint64_t period, bytes, vec, calls, end_at, spin;
static uint8_t v[32 * 512] __attribute__((aligned(8)));
static unsigned end;
enum { E_SHUTDOWN, E_REBOOT, E_ILLEGAL, E_STORE, E_JUMP, E_NONE };
static void timer(void) { csr_write(CSR_STIMECMP, NEVER); }
static void soft(void) { __asm__ volatile("csrc sip, %0" :: "r"(2ul)); }

static void finish(void)
{
    switch (end) {
    case E_SHUTDOWN: sbi_shutdown(SBI_REASON_NONE);
    case E_REBOOT: sbi_call(SBI_SRST, SBI_SRST_RESET, 1, SBI_REASON_NONE, 0); break;
    case E_ILLEGAL: csr_write(stvec, 0); __asm__ volatile(".word 0"); break;
    case E_STORE: *(volatile uint64_t *)(machine.memory_base + machine.memory_size + 4096) = 1; break;
    case E_JUMP: ((void (*)(void))(uintptr_t)(machine.memory_base + machine.memory_size + 4096))(); break;
    }
}

static __attribute__((noreturn)) void work(void *argument)
{
    csr_write(sie, 1ul << IRQ_TIMER);
    if (vec) csr_set(sstatus, SSTATUS_VS_INITIAL);
    csr_set(sstatus, SSTATUS_FS_INITIAL);
    for (uint64_t round = 0;; round++) {
        if (!spin) {
            uint64_t next = (read_time() / period + 1) * period;
            if (end_at && next > end_at && read_time() < end_at && (argument == NULL || end == E_REBOOT)) next = end_at;
            csr_write(CSR_STIMECMP, next);
            while (read_time() < next)
                wait_for_interrupt();
        }
        if (vec) vector_load(v, 8, 0);
        fp_load((uint64_t *)v, 0);
        if (end_at && end != E_NONE && read_time() >= end_at && (argument == NULL || end == E_REBOOT)) finish();
        if (calls & 1) sbi_remote_sfence_vma(0, ALL_HARTS, 0, UINT64_MAX);
        if (calls & 2) sbi_send_ipi(0, ALL_HARTS);
        if (bytes != 0)
            sbi_call(SBI_DBCN, SBI_DBCN_WRITE, bytes, (uintptr_t)"abcdefghijklmnopqrstuvwxyz01234567890123456789012345678901234\n", 0);
    }
}

bool guest_main(void)
{
    static const char *const ends[] = { "shutdown", "reboot", "illegal", "store", "jump", "none", NULL };
    period = us_to_ticks(arg_number("period_us", 500, 1, UINT32_MAX));
    bytes = arg_number("bytes", 0, 0, 60);
    vec = arg_number("vec", 1, 0, 1);
    calls = arg_number("calls", 0, 0, 3);
    spin = arg_number("spin", 0, 0, 1);
    uint64_t at_us = arg_number("at_us", 180000, 0, 1000000000);
    uint64_t every_us = arg_number("every_us", 9000, 1, 1000000000);
    end = arg_choice("end", ends);
    args_finish();
    if (vec && !machine_has("v")) vec = 0;
    end_at = us_to_ticks(at_us);
    while (read_time() + us_to_ticks(1000) >= end_at) end_at += us_to_ticks(every_us);
    on_interrupt(IRQ_TIMER, timer);
    on_interrupt(IRQ_SOFTWARE, soft);
    for (unsigned i = 1; i < machine.hart_count; i++) {
        secondaries[i] = (struct secondary){ &stacks[i][STACK_WORDS], work, &stacks[i] };
        sbi_hart_start(i, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&secondaries[i]);
    }
    work(NULL);
}
