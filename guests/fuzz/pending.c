/* IPIs, timers, waiting, and interrupt enables at random. */
#include "code.h"
#include "csr.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"
#include "timer.h"

#define WFI     0x10500073u
#define WRS_NTO 0x00d00073u
#define PAUSE   0x0100000fu

static uint64_t any_deadline(struct vcpu *v)
{
    uint64_t r = any(v), now = read_time();
    switch (r & 7) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - (r >> 8 & 1);
    case 2:
        return now - (r >> 8 & 0xffff);
    case 3:
        return edge_number(v);
    case 4:
        return now;
    default:
        return now + (r >> 8 & 0x3ff);
    }
}

unsigned try_pending(struct vcpu *v)
{
    uint64_t r = any(v);
    switch (r & 3) {
    case 0:
        sbi_send_ipi(r & 4 ? any(v) : any(v) & ((1ul << (vcpu_count & 63)) - 1), r & 4 ? UINT64_MAX : 0);
        return 1;
    case 1:
        if (r & 4)
            timer_set(any_deadline(v));
        else
            sbi_call(SBI_TIME, SBI_TIME_SET, any_deadline(v), 0, 0);
        csr_write(sie, r >> 8 & 0x222);
        csr_write(sip, r >> 16 & 0x222);
        return 1;
    default:
        code_start(v);
        registers_fill(v);
        code_add_exactly(v, r & 8 ? WFI : r & 16 ? WRS_NTO : PAUSE);
        code_add_exactly(v, r & 32 ? 0x10016073 : r & 64 ? 0x10017073 : WFI); /* csrsi, csrci sstatus, SIE */
        return code_run(v, (struct setting){ .interrupts = r & 128, .satp = r & 256 ? fence_satp(v, false) : 0, .limit_us = 1 + (r >> 16 & 63) });
    }
}
