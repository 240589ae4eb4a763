#include "start.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"

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
