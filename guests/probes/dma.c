/* Does what a device was told to do in a former life reach the next one? In each life it looks whether its disk (virtio over MMIO, the slot `slot`) has been reset and
 * whether anything is stored to its memory for `watch_ms`; then it has the disk read into that memory twice, waits for the first of both and reboots, until `until_ms`
 * of the machine's time are over. For a disk that is slow enough for the second one still to be under way, and that isn't all zeros. It has to own the slot and to
 * have its memory where the board has it. */
#include <stdbool.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define SLOTS     0x10001000ul
#define SLOT_SIZE 0x1000ul
#define BYTES     (64u << 10) /* of each read */
#define READS     2
#define PATIENCE_MS 20000

/* Virtual I/O Device specification 1.2, 4.2.2: registers. */
enum { MAGIC = 0x00, VERSION = 0x04, DEVICE = 0x08, DRIVER_FEATURES = 0x20, DRIVER_FEATURES_SEL = 0x24, QUEUE_SEL = 0x30, QUEUE_NUM = 0x38,
       QUEUE_READY = 0x44, QUEUE_NOTIFY = 0x50, STATUS = 0x70, QUEUE_DESC = 0x80, QUEUE_DRIVER = 0x90, QUEUE_DEVICE = 0xa0 };
enum { BLOCK_DEVICE = 2, ACKNOWLEDGE = 1, DRIVER = 2, DRIVER_OK = 4, FEATURES_OK = 8, VERSION_1_HIGH = 1 };

/* 2.7.5 to 2.7.8: a queue of 8. */
#define QUEUE 8
enum { NEXT = 1, WRITE = 2 };
struct descriptor { uint64_t address; uint32_t length; uint16_t flags, next; };
struct available { uint16_t flags, index, ring[QUEUE], used_event; };
struct used { uint16_t flags, index; struct { uint32_t id, length; } ring[QUEUE]; uint16_t avail_event; };
/* 5.2.6: a request to read. */
struct request { uint32_t type, reserved; uint64_t sector; };

static struct descriptor descriptors[QUEUE] __attribute__((aligned(16)));
static struct available available __attribute__((aligned(2)));
static volatile struct used used __attribute__((aligned(4)));
static struct request requests[READS];
static volatile uint8_t statuses[READS];
static volatile uint64_t data[READS][BYTES / 8] __attribute__((aligned(4096)));
static volatile uint8_t *slot;
static unsigned findings;

static volatile uint32_t *reg(unsigned offset) { return (volatile uint32_t *)(slot + offset); }
static void fence(void) { __asm__ volatile("fence iorw, iorw" ::: "memory"); }

static void find(bool wrong, const char *what, uint64_t value)
{
    if (!wrong)
        return;
    print("left of a former life: %s, 0x%lx\n", what, value);
    findings++;
}

static bool is_untouched(void)
{
    for (unsigned read = 0; read < READS; read++) {
        if (statuses[read] != 0 || used.index != 0)
            return false;
        for (unsigned word = 0; word < BYTES / 8; word += 64)
            if (data[read][word] != 0)
                return false;
    }
    return true;
}

static void look(uint64_t watch_ms)
{
    find(*reg(STATUS) != 0, "the device's status", *reg(STATUS));
    *reg(QUEUE_SEL) = 0;
    find(*reg(QUEUE_READY) != 0, "a queue", *reg(QUEUE_READY));
    bool untouched = true;
    for (uint64_t end = read_time() + us_to_ticks(watch_ms * 1000); untouched && read_time() < end;)
        untouched = is_untouched();
    find(!untouched, "a store of the device", used.index);
}

static void set_address(unsigned offset, const volatile void *what)
{
    uint64_t address = (uint64_t)(uintptr_t)what;
    *reg(offset) = (uint32_t)address;
    *reg(offset + 4) = (uint32_t)(address >> 32);
}

static void set_up(void)
{
    *reg(STATUS) = 0;
    *reg(STATUS) = ACKNOWLEDGE | DRIVER;
    *reg(DRIVER_FEATURES_SEL) = 0;
    *reg(DRIVER_FEATURES) = 0;
    *reg(DRIVER_FEATURES_SEL) = 1;
    *reg(DRIVER_FEATURES) = VERSION_1_HIGH;
    *reg(STATUS) = ACKNOWLEDGE | DRIVER | FEATURES_OK;
    if ((*reg(STATUS) & FEATURES_OK) == 0)
        fail("the device wants other features");
    *reg(QUEUE_NUM) = QUEUE;
    set_address(QUEUE_DESC, descriptors);
    set_address(QUEUE_DRIVER, &available);
    set_address(QUEUE_DEVICE, &used);
    *reg(QUEUE_READY) = 1;
    *reg(STATUS) = ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK;
}

/* Asks for all reads at once: each is a request, the data and a status. */
static void read_all(void)
{
    for (unsigned read = 0; read < READS; read++) {
        struct descriptor *chain = &descriptors[3 * read];
        uint16_t first = (uint16_t)(3 * read);
        requests[read] = (struct request){ 0, 0, 0 };
        statuses[read] = 0xff;
        chain[0] = (struct descriptor){ (uint64_t)(uintptr_t)&requests[read], sizeof requests[read], NEXT, first + 1 };
        chain[1] = (struct descriptor){ (uint64_t)(uintptr_t)data[read], BYTES, NEXT | WRITE, first + 2 };
        chain[2] = (struct descriptor){ (uint64_t)(uintptr_t)&statuses[read], 1, WRITE, 0 };
        available.ring[read] = first;
    }
    fence();
    available.index = READS;
    fence();
    *reg(QUEUE_NOTIFY) = 0;
}

bool guest_main(void)
{
    slot = (volatile uint8_t *)(SLOTS + SLOT_SIZE * arg_number("slot", 7, 0, 7));
    uint64_t watch_ms = arg_number("watch_ms", 50, 0, 10000);
    uint64_t until_ms = arg_number("until_ms", 0, 0, 1000000);
    args_finish();
    if (*reg(MAGIC) != 0x74726976 || *reg(VERSION) != 2 || *reg(DEVICE) != BLOCK_DEVICE)
        fail("there is no disk in this slot");
    look(watch_ms);
    set_up();
    read_all();
    uint64_t end = read_time() + us_to_ticks(PATIENCE_MS * 1000ul);
    while (used.index == 0 && read_time() < end)
        ;
    unsigned done = used.index;
    fence();
    bool arrived = done > 0 && data[used.ring[0].id / 3][0] != 0 && statuses[used.ring[0].id / 3] == 0;
    print("@result {\"job\":\"dma\",\"arrived\":%s,\"pending\":%u,\"findings\":%u,\"ok\":%s}\n", arrived ? "true" : "false", READS - done, findings,
          arrived && findings == 0 ? "true" : "false");
    if (read_time() < us_to_ticks(until_ms * 1000)) {
        sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, 0, 0);
        fail("the reboot failed");
    }
    return arrived && findings == 0;
}
