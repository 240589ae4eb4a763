/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two harts wake each other from WFI in turn, by IPIs after random delays. None may see a time before the IPI was
   sent. */
#include "guest.h"

/* The least delay, in iterations of two instructions, is four slices of the test: by then the other one sleeps. */
enum { TURNS = 1000, LEAST_DELAY = 10000, SIP_SSIP = 1 << 1 };

static _Atomic uint64_t sent_at;
static atomic_int early; /* times that an IPI arrived before it was sent */
static _Atomic uint64_t latest; /* ticks from sending to waking */
static long first;

static uint64_t read_sip(void)
{
    uint64_t pending;
    __asm__ volatile("csrr %0, sip" : "=r"(pending));
    return pending;
}

static void await_ipi(void)
{
    while (!(read_sip() & SIP_SSIP)) __asm__ volatile("wfi");
    uint64_t now = read_time(), sent = atomic_load(&sent_at);
    __asm__ volatile("csrc sip, %0" ::"r"(SIP_SSIP));
    if (now < sent) atomic_fetch_add(&early, 1);
    else if (now - sent > latest) latest = now - sent;
}

static void send_ipi(long to, uint64_t *random)
{
    long left = LEAST_DELAY + (long)(next_random(random) % LEAST_DELAY);
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(left));
    atomic_store(&sent_at, read_time());
    sbi(SBI_IPI, 0, 1, to, 0);
}

void other_hart(long hart)
{
    uint64_t random = (uint64_t)hart;
    __asm__ volatile("csrs sie, %0" ::"r"(SIP_SSIP)); /* sstatus.SIE stays 0: it only ends WFI */
    report_ready();
    for (int i = 0; i < TURNS; i++) {
        await_ipi();
        send_ipi(first, &random);
    }
}

void first_hart(long hart)
{
    uint64_t random = (uint64_t)hart + 100;
    __asm__ volatile("csrs sie, %0" ::"r"(SIP_SSIP));
    first = hart;
    start_others(hart);
    for (int i = 0; i < TURNS; i++) {
        send_ipi(1 - hart, &random); /* two harts: 0 and 1 */
        await_ipi();
    }
    print_number("early", (uint64_t)early);
    print_number("latest", latest);
    shut_down();
}
