/* Does the (virtual) PLIC do what its specification says? The interrupt comes from the 16550's transmitter: "the holding register is
 * empty" (THRE). */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "plic.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "device.h"

#define UART_THR 0
#define UART_IER 1
#define UART_IIR 2
#define IER_THRE 0x02
#define IIR_MASK 0x0f
#define IIR_THRE 0x02

#define ARRIVES_MS 1000 /* longer than any interrupt needs */
#define STAYS_AWAY_MS 20

static struct irqchip plic;
static struct device uart;
static unsigned failures;

static volatile uint64_t interrupts;
static volatile uint32_t claimed, claimed_again;
static volatile uint8_t identification;
static const char *volatile text; /* what is still to be sent, a character per interrupt */

static volatile uint8_t *uart_register(unsigned offset) { return (volatile uint8_t *)(uintptr_t)(uart.base + offset); }

/* Makes the transmitter interrupt (anew): THRE is reported when it is switched on while the register is empty. */
static void uart_interrupt_on(void)
{
    *uart_register(UART_IER) = 0;
    *uart_register(UART_IER) = IER_THRE;
}

static void external(void)
{
    claimed = irqchip_claim(&plic);
    identification = *uart_register(UART_IIR) & IIR_MASK; /* reading it takes THRE back */
    if (text && *text)
        *uart_register(UART_THR) = *text++;
    else
        *uart_register(UART_IER) = 0;
    claimed_again = irqchip_claim(&plic);
    irqchip_complete(&plic, claimed);
    interrupts++;
}

static void check(bool holds, const char *what)
{
    if (!holds) {
        print("failed: %s\n", what);
        failures++;
    }
}

static bool arrives(uint64_t ms) { return wait_for_count(&interrupts, interrupts + 1, ms); }

static void check_claim(void)
{
    plic_set_priority(&plic, uart.source, 1);
    plic_set_enabled(&plic, uart.source, true);
    irqchip_set_threshold(&plic, 0);
    uart_interrupt_on();
    check(arrives(ARRIVES_MS), "an enabled interrupt arrives");
    check(claimed == uart.source, "a claim gives the source's number");
    check(identification == IIR_THRE, "the UART says why it interrupted");
    check(claimed_again == 0, "a second claim gives nothing");
    check(!arrives(STAYS_AWAY_MS), "an interrupt arrives once");
    check(irqchip_claim(&plic) == 0, "a claim without a cause gives nothing");
}

static void check_enable(bool strict)
{
    plic_set_enabled(&plic, uart.source, false);
    uart_interrupt_on();
    check(!arrives(STAYS_AWAY_MS), "a disabled interrupt stays away");
    check(irqchip_is_pending(&plic, uart.source), "a disabled interrupt is pending");
    check(irqchip_claim(&plic) == 0, "a disabled interrupt can't be claimed");
    plic_set_enabled(&plic, uart.source, true);
    if (!strict)
        irqchip_set_threshold(&plic, 0); /* QEMU 10.0's own PLIC overlooks what it is asked to enable until another register is written */
    check(arrives(ARRIVES_MS), "a pending interrupt arrives when it is enabled");
    check(!irqchip_is_pending(&plic, uart.source), "a claimed interrupt is not pending any more");
}

static void check_threshold(void)
{
    irqchip_set_threshold(&plic, 1);
    check(irqchip_threshold(&plic) == 1, "the threshold reads back");
    uart_interrupt_on();
    check(!arrives(STAYS_AWAY_MS), "an interrupt at the threshold stays away");
    irqchip_set_threshold(&plic, 0);
    check(arrives(ARRIVES_MS), "an interrupt above the threshold arrives");
    plic_set_priority(&plic, uart.source, 0);
    uart_interrupt_on();
    check(!arrives(STAYS_AWAY_MS), "an interrupt of priority 0 stays away");
    plic_set_priority(&plic, uart.source, 1);
    check(arrives(ARRIVES_MS), "it arrives when it gets a priority");
}

static void check_completion(void)
{
    csr_clear(sie, 1ul << IRQ_EXTERNAL); /* this part claims by hand */
    uart_interrupt_on();
    check(irqchip_claim(&plic) == uart.source, "an interrupt can be claimed by polling");
    uart_interrupt_on();
    check(irqchip_claim(&plic) == 0, "a source is not signalled again before its completion");
    irqchip_complete(&plic, uart.source);
    csr_set(sie, 1ul << IRQ_EXTERNAL);
    check(arrives(ARRIVES_MS), "a source that is still active is signalled again after its completion");
}

/* Sends a line as a driver does: a character per interrupt. */
static void check_transmission(void)
{
    static const char line[] = "this line was sent by interrupts\n";
    text = line;
    uart_interrupt_on();
    check(wait_for_count(&interrupts, interrupts + sizeof line, 10 * ARRIVES_MS), "each character sent gives an interrupt");
    check(*text == '\0', "the whole line was sent");
}

/* One after the other, without a pause. */
static void check_repeats(uint64_t repeats)
{
    for (uint64_t i = 0; i < repeats && failures == 0; i++) {
        uart_interrupt_on();
        check(arrives(ARRIVES_MS), "each of many interrupts arrives");
    }
}

bool guest_main(void)
{
    bool strict = arg_number("strict", 0, 0, 1);
    uint64_t repeats = arg_number("repeats", 0, 0, 1000000000);
    args_finish();
    plic = plic_find(machine.boot_hart);
    uart = device_find(UART_16550);
    print("PLIC at 0x%lx, context %u; UART at 0x%lx, source %u\n", plic.base, plic.context, uart.base, uart.source);
    on_interrupt(IRQ_EXTERNAL, external);
    csr_write(sie, 1ul << IRQ_EXTERNAL);

    check_claim();
    check_enable(strict);
    check_threshold();
    check_completion();
    check_transmission();
    check_repeats(repeats);

    print("@result {\"job\":\"plic\",\"interrupts\":%lu,\"failures\":%u,\"ok\":%s}\n", interrupts, failures,
          failures == 0 ? "true" : "false");
    return failures == 0;
}
