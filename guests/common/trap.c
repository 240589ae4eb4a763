#include "trap.h"
#include "console.h"
#include "csr.h"
#include "sbi.h"

static interrupt_handler *handlers[16];

void on_interrupt(unsigned interrupt, interrupt_handler *handler) { handlers[interrupt] = handler; }

__attribute__((weak)) void handle_exception(struct trap_frame *frame, uint64_t scause) { report_trap(frame, scause); }

void handle_trap(struct trap_frame *frame, uint64_t scause)
{
    uint64_t code = scause & ~SCAUSE_INTERRUPT;
    if (!(scause & SCAUSE_INTERRUPT)) {
        handle_exception(frame, scause);
        return;
    }
    if (code >= sizeof handlers / sizeof *handlers || !handlers[code])
        report_trap(frame, scause);
    handlers[code]();
}

static const char *exception_name(uint64_t scause)
{
    static const char *const names[] = {
        "instruction address misaligned", "instruction access fault", "illegal instruction", "breakpoint",
        "load address misaligned", "load access fault", "store address misaligned", "store access fault",
        "environment call from U-mode", "environment call from S-mode", "?", "?",
        "instruction page fault", "load page fault", "?", "store page fault",
    };
    if (scause & SCAUSE_INTERRUPT)
        return "interrupt without a handler";
    return scause < sizeof names / sizeof *names ? names[scause] : "?";
}

void report_trap(const struct trap_frame *frame, uint64_t scause)
{
    static const char *const registers[32] = {
        "pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5",
        "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
    };
    uint64_t stval = csr_read(stval);
    print("\nunexpected trap: %s (scause 0x%lx), stval 0x%lx, sstatus 0x%lx\n", exception_name(scause), scause, stval,
          frame->sstatus);
    for (int i = 0; i < 32; i++)
        print(" %s=0x%lx%c", registers[i], frame->x[i], i % 4 == 3 ? '\n' : ' ');
    sbi_shutdown(SBI_REASON_FAILURE);
}

void fail(const char *format, ...)
{
    va_list arguments;
    interrupts_off();
    va_start(arguments, format);
    print_arguments(format, arguments);
    va_end(arguments);
    print("\n");
    sbi_shutdown(SBI_REASON_FAILURE);
}
