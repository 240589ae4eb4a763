/* Is memory what a device has stored there, and does a device get what the guest has stored, though the guest has executed privileged instructions there before? A hypervisor that puts
 * something else in their places sees neither a device's load nor its store. In each round the guest stores functions in a page and calls them, has the disk keep that page, fills
 * the page from other sectors of the disk, without a store or a load of its own there, and only then looks at both. It has to own the slot of a disk that can be written, and its memory
 * has to be where the board has it. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "disk_device.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "trap.h"
#include "xorshift.h"

#define PAGE      4096u
#define WORDS     (PAGE / 4)
#define STRIDE    16 /* words from one function to the next */
#define READ      0x14002573u /* csrr a0, sscratch */
#define RETURN    0x00008067u
#define KEPT      0ul /* sectors: of the page with functions */
#define OTHER     (PAGE / DISK_SECTOR) /* of what replaces them */

static volatile uint32_t executed[WORDS] __attribute__((aligned(PAGE)));
static volatile uint32_t kept[WORDS] __attribute__((aligned(PAGE)));
static uint32_t other[WORDS] __attribute__((aligned(PAGE)));
static uint64_t seed;
static unsigned asked;

static uint32_t function_at(unsigned word) { return word % STRIDE == 0 ? READ : word % STRIDE == 1 ? RETURN : word; }

static void transfer(bool is_write, volatile void *page, uint64_t sector)
{
    disk_ask(&(struct disk_transfer){ is_write, PAGE, page, sector }, 1);
    asked++;
    if (disk_wait(asked) != asked || !disk_has_worked(0))
        fail("the disk doesn't %s", is_write ? "keep a page" : "give a page");
}

static void check(const char *who, unsigned word, uint32_t found, uint32_t expected)
{
    if (found == expected)
        return;
    print("@result {\"job\":\"fill\",\"ok\":false}\n");
    fail("word %u: %s %x, not %x", word, who, found, expected);
}

/* Calls all functions of the page. They are in pages of a shadow's own by then, if that takes traps. */
static void call_all(uint64_t times)
{
    for (uint64_t call = 0; call < times; call++) {
        for (unsigned word = 0; word < WORDS; word += STRIDE) {
            uint64_t mark = xorshift(&seed);
            csr_write(sscratch, mark);
            uint64_t found = ((uint64_t(*)(void))(uintptr_t)&executed[word])();
            if (found != mark)
                fail("word %u gives %lx, not %lx", word, found, mark);
        }
    }
}

static void run_round(uint64_t calls)
{
    for (unsigned word = 0; word < WORDS; word++) {
        executed[word] = function_at(word);
        other[word] = (uint32_t)(xorshift(&seed) >> 32);
    }
    __asm__ volatile("fence.i" ::: "memory");
    transfer(true, other, OTHER);
    call_all(calls);
    transfer(true, executed, KEPT);
    transfer(false, kept, KEPT);
    transfer(false, executed, OTHER);
    for (unsigned word = 0; word < WORDS; word++) {
        check("the device was given", word, kept[word], function_at(word));
        check("the device has stored what reads as", word, executed[word], other[word]);
    }
}

bool guest_main(void)
{
    uint64_t slot = arg_number("slot", 7, 0, 7);
    uint64_t rounds = arg_number("rounds", 4, 1, 1000);
    uint64_t calls = arg_number("calls", 20, 1, 100000);
    seed = arg_number("seed", 1, 1, UINT32_MAX);
    args_finish();
    disk_attach(slot);
    disk_start();
    for (uint64_t round = 0; round < rounds; round++)
        run_round(calls);
    print("@result {\"job\":\"fill\",\"rounds\":%lu,\"calls\":%lu,\"ok\":true}\n", rounds, calls);
    return true;
}
