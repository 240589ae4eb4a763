#include "disk_device.h"
#include "csr.h"
#include "machine.h"
#include "timer.h"
#include "trap.h"

#define SLOTS       0x10001000ul
#define SLOT_SIZE   0x1000ul
#define PATIENCE_MS 20000

/* 4.2.2: registers. */
enum { MAGIC = 0x00, VERSION = 0x04, DEVICE = 0x08, DRIVER_FEATURES = 0x20, DRIVER_FEATURES_SEL = 0x24, QUEUE_SEL = 0x30, QUEUE_NUM = 0x38,
       QUEUE_READY = 0x44, QUEUE_NOTIFY = 0x50, STATUS = 0x70, QUEUE_DESC = 0x80, QUEUE_DRIVER = 0x90, QUEUE_DEVICE = 0xa0 };
enum { BLOCK_DEVICE = 2, ACKNOWLEDGE = 1, DRIVER = 2, DRIVER_OK = 4, FEATURES_OK = 8, VERSION_1_HIGH = 1 };

/* 2.7.5 to 2.7.8: a queue of 8, of which each transfer takes 3 descriptors. */
#define QUEUE 8
#define CHAIN 3
enum { NEXT = 1, WRITE = 2 };
struct descriptor { uint64_t address; uint32_t length; uint16_t flags, next; };
struct available { uint16_t flags, index, ring[QUEUE], used_event; };
struct used { uint16_t flags, index; struct { uint32_t id, length; } ring[QUEUE]; uint16_t avail_event; };
/* 5.2.6 */
enum { IN = 0, OUT = 1, OK = 0, NOT_YET = 0xff };
struct request { uint32_t type, reserved; uint64_t sector; };

static struct descriptor descriptors[QUEUE] __attribute__((aligned(16)));
static struct available available __attribute__((aligned(2)));
static volatile struct used used __attribute__((aligned(4)));
static struct request requests[DISK_TRANSFERS];
static volatile uint8_t statuses[DISK_TRANSFERS];
static volatile uint8_t *registers;

static volatile uint32_t *reg(unsigned offset) { return (volatile uint32_t *)(registers + offset); }
static void fence(void) { __asm__ volatile("fence iorw, iorw" ::: "memory"); }

void disk_attach(uint64_t slot)
{
    registers = (volatile uint8_t *)(SLOTS + SLOT_SIZE * slot);
    if (*reg(MAGIC) != 0x74726976 || *reg(VERSION) != 2 || *reg(DEVICE) != BLOCK_DEVICE)
        fail("there is no disk in this slot");
}

uint32_t disk_status(void) { return *reg(STATUS); }

uint32_t disk_has_queue(void)
{
    *reg(QUEUE_SEL) = 0;
    return *reg(QUEUE_READY);
}

bool disk_is_untouched(void)
{
    bool untouched = used.index == 0;
    for (unsigned transfer = 0; transfer < DISK_TRANSFERS; transfer++)
        untouched = untouched && statuses[transfer] == 0;
    return untouched;
}

static void set_address(unsigned offset, const volatile void *what)
{
    uint64_t address = (uint64_t)(uintptr_t)what;
    *reg(offset) = (uint32_t)address;
    *reg(offset + 4) = (uint32_t)(address >> 32);
}

void disk_start(void)
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

void disk_ask(const struct disk_transfer *transfers, unsigned count)
{
    uint16_t index = available.index;
    for (unsigned transfer = 0; transfer < count; transfer++) {
        const struct disk_transfer *asked = &transfers[transfer];
        struct descriptor *chain = &descriptors[CHAIN * transfer];
        uint16_t first = (uint16_t)(CHAIN * transfer);
        requests[transfer] = (struct request){ asked->is_write ? OUT : IN, 0, asked->sector };
        statuses[transfer] = NOT_YET;
        chain[0] = (struct descriptor){ (uint64_t)(uintptr_t)&requests[transfer], sizeof requests[transfer], NEXT, first + 1 };
        chain[1] = (struct descriptor){ (uint64_t)(uintptr_t)asked->data, asked->bytes, NEXT | (asked->is_write ? 0 : WRITE), first + 2 };
        chain[2] = (struct descriptor){ (uint64_t)(uintptr_t)&statuses[transfer], 1, WRITE, 0 };
        available.ring[index++ % QUEUE] = first;
    }
    fence();
    available.index = index;
    fence();
    *reg(QUEUE_NOTIFY) = 0;
}

unsigned disk_wait(unsigned count)
{
    for (uint64_t end = read_time() + us_to_ticks(PATIENCE_MS * 1000ul); used.index < count && read_time() < end;)
        ;
    unsigned done = used.index;
    fence();
    return done;
}

unsigned disk_first_done(void) { return used.ring[0].id / CHAIN; }

bool disk_has_worked(unsigned transfer) { return statuses[transfer] == OK; }
