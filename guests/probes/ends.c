/* All harts end the guest at the same moment. Does one that comes second go on behind its call, which can't return? */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"

#define STACK_WORDS 128

struct ender {
    struct secondary start;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct ender enders[MAX_HARTS];
static atomic_uint ready;

static void end(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < machine.hart_count)
        ;
    sbi_call(SBI_SRST, SBI_SRST_RESET, 0 /* shutdown */, SBI_REASON_NONE, 0);
    for (unsigned n = 0; n < 100; n++)
        print("hart goes on\n");
}

bool guest_main(void)
{
    args_finish();
    print("@result {\"job\":\"ends\",\"ok\":true}\n");
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id == machine.boot_hart)
            continue;
        enders[i].start = (struct secondary){ enders[i].stack + STACK_WORDS, end, NULL };
        start_hart(machine.harts[i].id, &enders[i].start);
    }
    end(NULL);
    return true;
}
