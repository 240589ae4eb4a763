/* Loads from a page that isn't mapped, in the guest's kernel, with nobody to handle it (stvec = 0). On the bare machine it then traps at address 0 for ever. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "smp_paging.h"
#include "start.h"

bool guest_main(void)
{
    args_finish();
    paging_prepare();
    if (!paging_on())
        return false;
    print("a load from a page that isn't mapped, no trap handler\n");
    csr_write(stvec, 0);
    (void)*(volatile uint64_t *)(PAGING_WINDOW + (1ul << 30));
    print("nobody stopped the load\n");
    print("@result {\"job\":\"wild-unmapped\",\"ok\":false}\n");
    return false;
}
