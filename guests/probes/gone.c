/* What does an instruction do that traps into a hypervisor when its page is gone? The page has just been unmapped, without SFENCE.VMA: the hart may go on
 * with it, or find the new table, but there is no illegal instruction. (A hypervisor that has to fetch what has trapped finds nothing there.) */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "smp_paging.h"
#include "start.h"

#define FETCH_PAGE_FAULT 12
#define CODE (PAGING_WINDOW + 64) /* behind what tells the pages apart */

/* Unmaps the page that this stands in (a0: the page's entry), and executes one more instruction of it. */
static const uint32_t code[] = {
    0x00053023, /* sd zero, (a0) */
    0x00d00073, /* wrs.nto */
    0x00008067, /* ret */
};

/* Calls it. Returns the cause of its trap, 0 if there is none. */
static uint64_t call(void)
{
    uint64_t handler, pc, at;
    register uint64_t entry __asm__("a0") = (uintptr_t)paging_window_entry();
    __asm__ volatile("la %[at], 1f\n csrrw %[handler], stvec, %[at]\n csrw sepc, zero\n jalr %[code]\n"
                     ".balign 4\n 1: csrw stvec, %[handler]\n csrr %[pc], sepc\n"
                     : [handler] "=&r"(handler), [pc] "=&r"(pc), [at] "=&r"(at)
                     : [code] "r"(CODE), "r"(entry)
                     : "ra", "memory");
    return pc ? csr_read(scause) : 0;
}

bool guest_main(void)
{
    machine_needs("zawrs", "WRS.NTO belongs to it");
    uint64_t n = arg_number("n", 100, 1, 1000000);
    args_finish();
    paging_prepare();
    if (!paging_on())
        return false;
    uint64_t faults = 0, executed = 0, others = 0, other = 0;
    for (uint64_t i = 0; i < n; i++) {
        paging_map_window(i);
        __asm__ volatile("sfence.vma" ::: "memory");
        for (unsigned word = 0; word < sizeof code / sizeof *code; word++)
            ((volatile uint32_t *)CODE)[word] = code[word];
        __asm__ volatile("fence.i" ::: "memory");
        uint64_t cause = call();
        if (cause == FETCH_PAGE_FAULT)
            faults++;
        else if (cause == 0)
            executed++;
        else {
            others++;
            other = cause;
        }
    }
    paging_off();
    if (others)
        print("%lu traps with another cause, such as %lu\n", others, other);
    print("@result {\"job\":\"gone\",\"faults\":%lu,\"executed\":%lu,\"ok\":%s}\n", faults, executed, others ? "false" : "true");
    return others == 0;
}
