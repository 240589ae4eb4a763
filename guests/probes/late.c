/* Is the external interrupt of a hart that is started what the interrupt controller says? A source asks for attention before; the firmware may or may not
 * clear the hart's context when it starts it (OpenSBI does), but if the context still has the source enabled above its threshold, the line is up. Asked
 * at its first start, and after it has stopped and been started again. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "plic.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "device.h"

#define STACK_WORDS 256
#define SETTLES_US  3000
#define LIVES       3

static struct secondary second;
static uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
static atomic_uint lives;
static struct irqchip plic; /* as the other hart sees it */
static volatile struct {
    uint64_t sip;
    bool asks;
} seen[LIVES];

static void look(void *argument)
{
    uint32_t source = (uint32_t)(uintptr_t)argument;
    uint64_t end = read_time() + us_to_ticks(SETTLES_US), pending;
    bool asks = irqchip_is_pending(&plic, source) && plic_is_enabled(&plic, source) && irqchip_threshold(&plic) == 0;
    do
        pending = csr_read(sip);
    while (!(pending & 1ul << IRQ_EXTERNAL) && read_time() < end);
    unsigned life = atomic_load(&lives);
    seen[life].sip = pending;
    seen[life].asks = asks;
    atomic_fetch_add(&lives, 1);
    sbi_hart_stop();
}

bool guest_main(void)
{
    uint64_t pause_us = arg_number("pause_us", 1000, 0, 1000000);
    args_finish();
    struct device uart = device_find(UART_16550);
    uint64_t other = machine.harts[machine.harts[0].id == machine.boot_hart].id;
    volatile uint8_t *port = (volatile uint8_t *)(uintptr_t)uart.base;
    plic = plic_find(other);
    irqchip_enable(&plic, uart.source, LEVEL_HIGH);
    port[1] = 2; /* the transmitter is empty: at once an interrupt */
    sleep_us(pause_us);
    bool ok = true;
    for (unsigned life = 0; life < LIVES; life++) {
        second = (struct secondary){ &stack[STACK_WORDS], look, (void *)(uintptr_t)uart.source };
        start_hart(other, &second);
        uint64_t end = read_time() + us_to_ticks(1000000);
        while ((atomic_load(&lives) <= life || sbi_hart_status(other).value != SBI_HART_STOPPED) && read_time() < end)
            ;
        bool is_up = seen[life].sip >> IRQ_EXTERNAL & 1;
        print("life %u: the controller asks: %u, sip.SEIP: %u%s\n", life, seen[life].asks, is_up,
              is_up == seen[life].asks ? "" : ", which contradicts it");
        ok &= is_up == seen[life].asks;
    }
    print("@result {\"job\":\"late\",\"ok\":%s}\n", ok ? "true" : "false");
    return ok;
}
