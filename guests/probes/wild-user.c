/* Makes a call in user mode, with nobody in the guest's kernel to handle it (stvec = 0). On the bare machine it then traps at address 0 for ever. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "start.h"

bool guest_main(void)
{
    args_finish();
    print("a call in user mode, no trap handler\n");
    csr_write(stvec, 0);
    csr_clear(sstatus, 1ul << 8 /* SPP: to user mode */);
    __asm__ volatile("la t0, 1f\n csrw sepc, t0\n sret\n 1: ecall" ::: "t0", "memory");
    print("nobody stopped the call\n");
    print("@result {\"job\":\"wild-user\",\"ok\":false}\n");
    return false;
}
