/* vCPUs stop, start and suspend each other (SBI HSM). */
#include "csr.h"
#include "irqchip_registers.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"
#include "timer.h"

#define HSM_SUSPEND 3
#define START_PENDING 2

uint64_t start_address(void) { return (uintptr_t)secondary_start; }

static long start(struct vcpu *target) { return sbi_hart_start(target->id, start_address(), (uintptr_t)&target->start); }

/* Has all vCPUs go on that have stopped and have something left to do. */
unsigned start_all(void)
{
    unsigned calls = 0;
    for (unsigned i = 0; i < vcpu_count; i++) {
        if (!vcpus[i]->finished) {
            start(vcpus[i]);
            calls++;
        }
    }
    return calls;
}

/* Addresses at which nothing can start. The last one is odd: no instruction begins there. */
static uint64_t bad_address(struct vcpu *v)
{
    uint64_t end = machine.memory_base + machine.memory_size;
    const uint64_t list[] = { 0, end, end + PAGE, machine.memory_base - 1, UINT64_MAX, 1ul << 63, irqchips[0].base, end - 1 };
    return one_of(v, list);
}

unsigned try_lifecycle(struct vcpu *v)
{
    uint64_t r = any(v);
    struct vcpu *target = vcpus[(r >> 8) % vcpu_count];
    switch (r & 15) {
    case 0:
    case 1:
    case 2:
        /* Whoever has the index 0 keeps the others going. */
        if (v->index == 0)
            return 0;
        sbi_hart_stop();
        return 1;
    case 3:
        return start_all();
    case 4:
        sbi_hart_start(edge_number(v) | 64, start_address(), 0);
        return 1;
    case 5:
        if (sbi_hart_start(target->id, bad_address(v), 0) == SBI_SUCCESS)
            broken("hart %lu was started where there is no memory", target->id);
        return 1;
    case 6:
        /* The default suspension ends with an interrupt that is enabled: without one it would be for ever. */
        timer_set(read_time() + (any(v) & 0xff));
        csr_set(sie, 1ul << IRQ_TIMER);
        sbi_call(SBI_HSM, HSM_SUSPEND, any(v) & 1 ? 0 : (any(v) & 1) << 31 | (any(v) & 0x1fffffff), start_address(), (uintptr_t)&v->start);
        return 1;
    case 7:
        sbi_call(SBI_HSM, 4 + edge_number(v) % 1000, edge_number(v), edge_number(v), edge_number(v));
        return 1;
    case 8:
    case 9: {
        struct sbi_result status = sbi_hart_status(any(v) & 3 ? target->id : edge_number(v));
        if (status.error == SBI_SUCCESS && (status.value < 0 || status.value > 6))
            broken("the status of hart %lu is %ld", target->id, status.value);
        return 1;
    }
    default:
        if (target == v || target->finished)
            return 0;
        start(target);
        return 1;
    }
}
