#include "start.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "trap.h"

void trap_entry(void);
void guest_start(uint64_t hart_id, const void *device_tree);

void guest_start(uint64_t hart_id, const void *device_tree)
{
    csr_write(stvec, trap_entry);
    console_init();
    machine_read(hart_id, device_tree);
    args_read(machine.bootargs);
    bool ok = guest_main();
    sbi_shutdown(ok ? SBI_REASON_NONE : SBI_REASON_FAILURE);
}

void start_hart(uint64_t id, struct secondary *secondary)
{
    long error = sbi_hart_start(id, (uintptr_t)secondary_start, (uintptr_t)secondary);
    if (error != SBI_SUCCESS)
        fail("hart_start of hart %lu: error %ld", id, error);
}
