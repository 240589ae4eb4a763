/* Never stops, never sleeps, never calls anyone: after its first line it gives a hypervisor no occasion to take the hart back but
 * the hypervisor's own timer. */
#include "args.h"
#include "console.h"
#include "start.h"

bool guest_main(void)
{
    args_finish();
    print("busy from now on\n");
    for (;;)
        __asm__ volatile("");
}
