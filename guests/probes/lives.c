/* Is a guest that is started again as it was when it was started first? Each life looks whether anything is left of a former one: in memory,
 * registers, the interrupt controller, the serial port, the states of harts. Then it leaves as much as it can: all harts send each other
 * interrupts and fences, sources are enabled, a timer is set, a line is begun; and ends, until `until_ms` of the machine's time are over. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "irqchip.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "device.h"

#define STACK_WORDS 128
#define PAGE        4096
#define MARK        0x6c69766573206f66ul
#define ALL_HARTS   UINT64_MAX /* hart mask base: the mask doesn't matter */

enum end { END_REBOOT, END_WARM, END_FAILURE, END_FAULT, END_STOP, END_SHUTDOWN };

extern char __stack_top[];

static volatile uint64_t initialised = 1;
static struct secondary secondaries[MAX_HARTS];
static uint64_t stacks[MAX_HARTS][STACK_WORDS] __attribute__((aligned(16)));
static atomic_bool stopping;
static unsigned findings;

static void find(bool wrong, const char *what, uint64_t value)
{
    if (!wrong)
        return;
    print("left of a former life: %s, 0x%lx\n", what, value);
    findings++;
}

/* Calls `each` for the first word of each page behind the program that isn't the device tree's. */
static void for_pages(void (*each)(volatile uint64_t *word))
{
    uint64_t tree = (uint64_t)(uintptr_t)machine.fdt.structure & ~(PAGE - 1ul);
    uint64_t end = machine.memory_base + machine.memory_size;
    for (uint64_t page = ((uint64_t)(uintptr_t)__stack_top + PAGE) & ~(PAGE - 1ul); page < end; page += PAGE)
        if (page < tree || page >= tree + (64 << 10))
            each((volatile uint64_t *)(uintptr_t)page);
}

static void look_at_page(volatile uint64_t *word) { find(*word != 0, "a word of memory", *word); }
static void mark_page(volatile uint64_t *word) { *word = MARK; }

static uint64_t float_register(void)
{
    uint64_t value;
    csr_set(sstatus, SSTATUS_FS_INITIAL);
    __asm__ volatile("fmv.x.d %0, fs5" : "=r"(value));
    return value;
}

static void look(const struct irqchip *irqchip, const struct device *uart)
{
    volatile uint8_t *port = (volatile uint8_t *)(uintptr_t)uart->base;
    find(initialised != 1, "a variable", initialised);
    find(csr_read(sie) != 0, "sie", csr_read(sie));
    find(csr_read(sip) != 0, "sip", csr_read(sip));
    find(csr_read(satp) != 0, "satp", csr_read(satp));
    find(csr_read(sscratch) != 0, "sscratch", csr_read(sscratch));
    find(float_register() != 0, "fs5", float_register());
    find(irqchip_is_pending(irqchip, uart->source), "a pending source", uart->source);
    find(irqchip_threshold(irqchip) != 0, "the threshold", irqchip_threshold(irqchip));
    find(irqchip_claim(irqchip) != 0, "a claim", 0);
    find(port[1] != 0, "IER", port[1]);
    find(port[7] != 0, "SCR", port[7]);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        uint64_t id = machine.harts[i].id;
        long status = sbi_hart_status(id).value;
        find(status != (id == machine.boot_hart ? SBI_HART_STARTED : SBI_HART_STOPPED), "a hart's state", status);
    }
    for_pages(look_at_page);
}

/* Until the end of the life, or until it is told to stop. */
static void storm(void *argument)
{
    volatile uint64_t *mine = argument;
    while (!atomic_load(&stopping)) {
        sbi_send_ipi(0, ALL_HARTS);
        sbi_remote_fence_i(0, ALL_HARTS);
        sbi_remote_sfence_vma(0, ALL_HARTS, 0, UINT64_MAX);
        (*mine)++;
    }
    sbi_hart_stop();
}

static void leave_traces(const struct irqchip *irqchip, const struct device *uart, uint64_t ms)
{
    volatile uint8_t *port = (volatile uint8_t *)(uintptr_t)uart->base;
    initialised = 2;
    for_pages(mark_page);
    __asm__ volatile("fmv.d.x fs5, %0; csrw sscratch, %0" :: "r"(MARK));
    irqchip_enable(irqchip, uart->source, LEVEL_HIGH);
    port[7] = 0x5a;
    port[1] = 2; /* the transmitter is empty: at once an interrupt, which nobody completes */
    irqchip_claim(irqchip);
    irqchip_set_threshold(irqchip, 3);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id == machine.boot_hart)
            continue;
        secondaries[i] = (struct secondary){ &stacks[i][STACK_WORDS], storm, &stacks[i][0] };
        sbi_hart_start(machine.harts[i].id, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&secondaries[i]);
    }
    for (uint64_t end = read_time() + us_to_ticks(ms * 1000); read_time() < end;) {
        sbi_send_ipi(0, ALL_HARTS);
        sbi_remote_fence_i(0, ALL_HARTS);
    }
    timer_set(read_time());
    csr_write(sie, 1ul << IRQ_TIMER | 1ul << IRQ_SOFTWARE | 1ul << IRQ_EXTERNAL);
}

static void end_life(enum end end)
{
    console_write("a line that is begun", 20);
    switch (end) {
    case END_REBOOT:
        sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, SBI_REASON_NONE, 0);
        break;
    case END_WARM:
        sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_WARM_REBOOT, SBI_REASON_NONE, 0);
        break;
    case END_FAILURE:
        sbi_shutdown(SBI_REASON_FAILURE);
    case END_FAULT:
        csr_write(stvec, 0);
        __asm__ volatile(".word 0");
        break;
    case END_STOP:
        atomic_store(&stopping, true);
        sbi_hart_stop();
        break;
    case END_SHUTDOWN:
        sbi_shutdown(SBI_REASON_NONE);
    }
}

bool guest_main(void)
{
    static const char *const ends[] = { "reboot", "warm", "failure", "fault", "stop", "shutdown", NULL };
    uint64_t until_ms = arg_number("until_ms", 0, 0, 1000000);
    uint64_t ms = arg_number("ms", 5, 0, 1000000);
    enum end end = arg_choice("end", ends);
    args_finish();
    struct irqchip irqchip = irqchip_find(machine.boot_hart);
    struct device uart = device_find(UART_16550);
    uint64_t began = read_time();
    look(&irqchip, &uart);
    print("@result {\"job\":\"lives\",\"harts\":%u,\"began_us\":%lu,\"ok\":%s}\n", machine.hart_count, ticks_to_ns(began) / 1000,
          findings ? "false" : "true");
    if (findings || began >= us_to_ticks(until_ms * 1000))
        return findings == 0;
    leave_traces(&irqchip, &uart, ms);
    end_life(end);
    print("the life did not end\n");
    return false;
}
