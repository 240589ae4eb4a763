/* Is the machine that of QEMU's `virt`, where programs made for it don't ask the device tree? And does an access outside of it end in an
 * access fault, as there? Last, it ends through the finisher (`sifive,test`). */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "plic.h"
#include "start.h"

#include <string.h>

#define FINISHER 0x100000ul
#define UART     0x10000000ul
#define VIRTIO   0x10001000ul
#define SLOTS    8  /* for virtio devices */
#define SOURCES  96 /* of the PLIC, and the one that isn't there, 0 */
#define PLIC_PRIORITY(source) (0xc000000ul + 4ul * (source))
#define PLIC_ENABLE(context) (0xc002000ul + 0x80ul * (context))

#define FETCH_ACCESS_FAULT 1
#define LOAD_ACCESS_FAULT  5
#define STORE_ACCESS_FAULT 7

static unsigned failures;

static void check(bool holds, const char *what)
{
    if (!holds) {
        print("failed: %s\n", what);
        failures++;
    }
}

struct trap {
    bool came;
    uint64_t cause, value, result;
};

/* Executes one instruction (`%[a]`: the address, `%[r]`: register a0) whose trap, if it makes one, goes to the instruction behind it. */
#define TRY(instruction, address) ({                                                                                  \
    register uint64_t result_ __asm__("a0") = 0x5a5a;                                                                 \
    uint64_t old_, pc_, at_;                                                                                          \
    __asm__ volatile("la %[at], 2f\n csrrw %[old], stvec, %[at]\n csrw sepc, zero\n la ra, 2f\n"                        \
                     ".balign 4\n .option push\n .option norvc\n " instruction "\n .option pop\n"                      \
                     "2: csrw stvec, %[old]\n csrr %[pc], sepc\n"                                                      \
                     : [r] "+r"(result_), [old] "=&r"(old_), [pc] "=&r"(pc_), [at] "=&r"(at_)                         \
                     : [a] "r"((uint64_t)(address))                                                                   \
                     : "ra", "memory");                                                                               \
    (struct trap){ pc_ != 0, csr_read(scause), csr_read(stval), result_ };                                            \
})

static void faults(struct trap trap, uint64_t cause, uint64_t value, const char *what)
{
    bool as_expected = trap.came && trap.cause == cause && trap.value == value;
    check(as_expected, what);
    if (!as_expected)
        print("  trap %u, scause %lu, stval 0x%lx instead of scause %lu, stval 0x%lx\n", trap.came, trap.cause, trap.value, cause, value);
}

static void check_nowhere(uint64_t address)
{
    faults(TRY("ld %[r], 0(%[a])", address), LOAD_ACCESS_FAULT, address, "a load from nowhere is a load access fault");
    faults(TRY("lbu %[r], 3(%[a])", address), LOAD_ACCESS_FAULT, address + 3, "so is one of a byte, at its own address");
    faults(TRY("sd %[r], 0(%[a])", address), STORE_ACCESS_FAULT, address, "a store to nowhere is a store access fault");
    faults(TRY("jr %[a]", address), FETCH_ACCESS_FAULT, address, "a jump to nowhere is an instruction access fault");
}

/* Some find the console by its alias rather than by `stdout-path`. */
static void check_tree(void)
{
    const char *alias = NULL, *console = NULL;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (fdt_is_named(&node, "aliases"))
            alias = fdt_string(&machine.fdt, &node, "serial0");
        if (fdt_is_named(&node, "chosen"))
            console = fdt_string(&machine.fdt, &node, "stdout-path");
    }
    check(alias && console && strcmp(alias, console) == 0, "the alias serial0 is the console");
}

static void check_devices(bool strict)
{
    if (strict) {
        faults(TRY("amoadd.w %[r], %[r], (%[a])", UART), STORE_ACCESS_FAULT, UART, "an atomic instruction on a device is a store access fault");
        faults(TRY("lr.w %[r], (%[a])", UART), LOAD_ACCESS_FAULT, UART, "a reservation on a device is a load access fault");
        faults(TRY("lw %[r], 2(%[a])", VIRTIO), LOAD_ACCESS_FAULT, VIRTIO + 2, "a misaligned load from a device is a load access fault");
        faults(TRY("sw %[r], 0xffe - 0x800(%[a])", VIRTIO + 0x800), STORE_ACCESS_FAULT, VIRTIO + 0xffe, "so is a store across two of them");
    }
    faults(TRY("jr %[a]", UART), FETCH_ACCESS_FAULT, UART, "a jump to a device is an instruction access fault");
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        volatile uint32_t *device = (volatile uint32_t *)(VIRTIO + 0x1000 * slot);
        check(device[0] == 0x74726976 && device[1] != 0 && device[2] == 0, "a virtio slot is there, and empty");
        device[0x70 / 4] = 0; /* a driver's reset */
    }
    check(!TRY("lw %[r], 0(%[a])", FINISHER).came, "the finisher is there");
}

/* Programs for rv64gc compute without a look at sstatus: OpenSBI switches the units on. `at_entry`: sstatus as it was then. */
static void check_units(uint64_t at_entry)
{
    check(at_entry & SSTATUS_FS, "floating point is switched on at the start");
    if (machine_has("v"))
        check(at_entry & SSTATUS_VS, "vectors are switched on at the start");
    if (at_entry & SSTATUS_FS) {
        double sum;
        __asm__ volatile("fmv.d.x %0, zero\n fadd.d %0, %0, %1" : "=&f"(sum) : "f"(1.5));
        check(sum == 1.5, "it computes");
    }
}

/* As the firmware has left it, and looked at before anything is printed: FIFOs on, 8n1, 115,200 baud. A driver that only switches the FIFOs on
 * (again) finds there what has been typed so far, and a driver that doesn't set the port up at all has a fast one. */
static void check_port(void)
{
    volatile uint8_t *port = (volatile uint8_t *)UART;
    check(port[1] == 0, "none of the serial port's interrupts is enabled");
    check(port[2] == 0xc1, "its FIFOs are on");
    check(port[3] == 0x03, "it is set to 8 bits, no parity, 1 stop bit");
    check(port[4] == 0, "nothing is set in its modem control register");
    port[3] = 0x83;
    check(port[0] == 2 && port[1] == 0, "it has 115,200 baud");
    port[3] = 0x03;
}

static void check_numbers(uint64_t tree)
{
    struct irqchip plic = plic_find(machine.boot_hart);
    check(plic.context == 2 * machine.boot_hart + 1, "the PLIC's supervisor context of hart n is 2n + 1");
    volatile uint32_t *enable = (volatile uint32_t *)PLIC_ENABLE(2 * machine.boot_hart);
    *enable = 1u << 10;
    check(*enable == 1u << 10, "its machine context has registers");
    *enable = 0;
    volatile uint32_t *beyond = enable + SOURCES / 32, *priority = (volatile uint32_t *)PLIC_PRIORITY(SOURCES);
    *beyond = ~0u;
    *priority = 7;
    check(*beyond == 0 && *priority == 0, "sources from 96 on are not there");
    check(tree % (2 << 20) == 0 && machine.memory_base + machine.memory_size - tree <= (2 << 20),
          "the device tree is at the last multiple of 2 MiB");
}

/* Nobody has written to the memory between this program and the device tree, which is mostly all of it. */
static void check_zeros(uint64_t tree)
{
    extern uint64_t __stack_top[];
    for (const uint64_t *word = __stack_top; word < (const uint64_t *)(uintptr_t)tree; word++) {
        if (*word == 0)
            continue;
        check(false, "the memory behind the program is zeros");
        print("  at 0x%lx is 0x%lx\n", (uint64_t)(uintptr_t)word, *word);
        break;
    }
}

bool guest_main(void)
{
    uint64_t at_entry = csr_read(sstatus);
    static const char *const ends[] = { "poweroff", "failure", "reboot", NULL };
    static const uint32_t values[] = { 0x5555, 0x3333, 0x7777 };
    bool strict = arg_number("strict", 0, 0, 1); /* devices of QEMU take atomic instructions */
    unsigned end = arg_choice("end", ends);
    uint64_t beyond = arg_number("beyond", machine.memory_base + machine.memory_size, 0, UINT64_MAX);
    bool zeros = arg_number("zeros", 0, 0, 1);
    args_finish();
    /* Right behind the tree's header are its structures: both begin in its first page. */
    uint64_t tree = (uint64_t)(uintptr_t)machine.fdt.structure & ~0xffful;
    check_units(at_entry);
    check_port();
    check_numbers(tree);
    if (zeros)
        check_zeros(tree);
    check_nowhere(beyond);
    check_tree();
    check_devices(strict);
    print("@result {\"job\":\"virt\",\"failures\":%u,\"ok\":%s}\n", failures, failures == 0 ? "true" : "false");
    *(volatile uint32_t *)FINISHER = values[end];
    print("the finisher did nothing\n");
    return false;
}
