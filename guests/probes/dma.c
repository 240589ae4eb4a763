/* Does what a device was told to do in a former life reach the next one? In each life it looks whether its disk (virtio over MMIO, the slot `slot`) has been reset and
 * whether anything is stored to its memory for `watch_ms`; then it has the disk read into that memory twice, waits for the first of both and reboots, until `until_ms`
 * of the machine's time are over. For a disk that is slow enough for the second one still to be under way, and that isn't all zeros. It has to own the slot and to
 * have its memory where the board has it. */
#include <stdbool.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "disk_device.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define BYTES (64u << 10) /* of each read */
#define READS 2

static volatile uint64_t data[READS][BYTES / 8] __attribute__((aligned(4096)));
static unsigned findings;

static void find(bool wrong, const char *what, uint64_t value)
{
    if (!wrong)
        return;
    print("left of a former life: %s, 0x%lx\n", what, value);
    findings++;
}

static bool is_untouched(void)
{
    for (unsigned read = 0; read < READS; read++)
        for (unsigned word = 0; word < BYTES / 8; word += 64)
            if (data[read][word] != 0)
                return false;
    return disk_is_untouched();
}

static void look(uint64_t watch_ms)
{
    find(disk_status() != 0, "the device's status", disk_status());
    find(disk_has_queue() != 0, "a queue", disk_has_queue());
    bool untouched = true;
    for (uint64_t end = read_time() + us_to_ticks(watch_ms * 1000); untouched && read_time() < end;)
        untouched = is_untouched();
    find(!untouched, "a store of the device", disk_wait(0));
}

bool guest_main(void)
{
    uint64_t slot = arg_number("slot", 7, 0, 7);
    uint64_t watch_ms = arg_number("watch_ms", 50, 0, 10000);
    uint64_t until_ms = arg_number("until_ms", 0, 0, 1000000);
    args_finish();
    disk_attach(slot);
    look(watch_ms);
    disk_start();
    struct disk_transfer reads[READS];
    for (unsigned read = 0; read < READS; read++)
        reads[read] = (struct disk_transfer){ false, BYTES, data[read], 0 };
    disk_ask(reads, READS);
    unsigned done = disk_wait(1);
    bool arrived = done > 0 && data[disk_first_done()][0] != 0 && disk_has_worked(disk_first_done());
    print("@result {\"job\":\"dma\",\"arrived\":%s,\"pending\":%u,\"findings\":%u,\"ok\":%s}\n", arrived ? "true" : "false", READS - done, findings,
          arrived && findings == 0 ? "true" : "false");
    if (read_time() < us_to_ticks(until_ms * 1000)) {
        sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, 0, 0);
        fail("the reboot failed");
    }
    return arrived && findings == 0;
}
