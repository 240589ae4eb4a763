/* The firmware of the bare hart. It is nothing but what a kernel has to be given by one: the hart hands over all traps that a kernel can be given, so that what
 * programs see is the hart's own doing. (OpenSBI takes some of them first, and gives a kernel whose stvec is vectored an odd program counter then.) */
#include <stdbool.h>
#include <stdint.h>
#include "csr.h"
#include "firmware.h"
#include "sbi.h"

#define CALL_FROM_KERNEL 9
#define MENVCFG          0x30a
#define STCE             (1ul << 63)
#define ENVIRONMENT      (STCE | 1 << 7 | 1 << 6 | 3 << 4 | 1) /* and CBZE, CBCFE, CBIE, FIOM */
#define EVERYWHERE       0x1f /* A = NAPOT, X, W, R */
#define MSTATUS_MPP      (3ul << 11)
#define MSTATUS_MPP_S    (1ul << 11)
#define BASE_COUNTERS    7
#define UART             ((volatile uint8_t *)0x10000000)
#define UART_STATUS      5
#define UART_EMPTY       0x20
#define SWITCH           ((volatile uint32_t *)0x100000)
#define SWITCH_FAIL      0x13333
#define SWITCH_OFF       0x5555
#define SPECIFICATION    0x02000000
#define RFENCE_ASID      2
#define DBCN_WRITE_BYTE  2

void firmware_setup(void);
void firmware_call(uint64_t *x);

/* The bit can't be set without. */
static bool has_sstc(void) { return csr_read(MENVCFG) & STCE; }

void firmware_setup(void)
{
    csr_write(medeleg, UINT64_MAX & ~(1ul << CALL_FROM_KERNEL));
    csr_write(mideleg, 1 << IRQ_SOFTWARE | 1 << IRQ_TIMER | 1 << IRQ_EXTERNAL);
    csr_write(mie, 0);
    csr_write(mcounteren, BASE_COUNTERS);
    csr_set(MENVCFG, ENVIRONMENT);
    if (has_sstc())
        csr_write(CSR_STIMECMP, UINT64_MAX);
    csr_write(pmpaddr0, UINT64_MAX);
    csr_write(pmpcfg0, EVERYWHERE);
    csr_clear(mstatus, MSTATUS_MPP);
    csr_set(mstatus, MSTATUS_MPP_S | SSTATUS_FS_INITIAL);
}

static void put(char c)
{
    while (!(UART[UART_STATUS] & UART_EMPTY))
        ;
    *UART = c;
}

__attribute__((noreturn)) static void end(uint32_t how)
{
    *SWITCH = how;
    for (;;)
        ;
}

/* Does the mask name hart 0, which is the only one (1), nobody (0), or others too (-1)? */
static int names_us(uint64_t mask, uint64_t base)
{
    if (base == UINT64_MAX)
        return 1;
    if (base != 0)
        return mask ? -1 : 0;
    return mask & ~1ul ? -1 : (int)mask;
}

static struct sbi_result answer(uint64_t extension, uint64_t function, const uint64_t a[])
{
    const struct sbi_result unknown = { SBI_ERR_NOT_SUPPORTED, 0 }, wrong = { SBI_ERR_INVALID_PARAM, 0 };
    switch (extension) {
    case SBI_BASE:
        if (function == SBI_BASE_PROBE) {
            uint64_t n = a[0];
            return (struct sbi_result){ 0, n == SBI_BASE || n == SBI_TIME || n == SBI_IPI || n == SBI_RFENCE || n == SBI_HSM || n == SBI_SRST ||
                                               n == SBI_DBCN };
        }
        return function == SBI_BASE_SPEC_VERSION ? (struct sbi_result){ 0, SPECIFICATION } : unknown;
    case SBI_TIME:
        if (function != SBI_TIME_SET)
            return unknown;
        /* No program's deadline is one that comes: it is past, or so late that nobody waits for it. */
        if (has_sstc())
            csr_write(CSR_STIMECMP, a[0]);
        else if (a[0] <= csr_read(time))
            csr_set(mip, 1 << IRQ_TIMER);
        else
            csr_clear(mip, 1 << IRQ_TIMER);
        return (struct sbi_result){ 0, 0 };
    case SBI_IPI: {
        int us = names_us(a[0], a[1]);
        if (function != SBI_IPI_SEND || us < 0)
            return function == SBI_IPI_SEND ? wrong : unknown;
        if (us)
            csr_set(mip, 1 << IRQ_SOFTWARE);
        return (struct sbi_result){ 0, 0 };
    }
    case SBI_RFENCE:
        if (function > RFENCE_ASID || names_us(a[0], a[1]) < 0)
            return function > RFENCE_ASID ? unknown : wrong;
        __asm__ volatile("fence.i; sfence.vma" ::: "memory");
        return (struct sbi_result){ 0, 0 };
    case SBI_HSM:
        if (function != SBI_HSM_STATUS)
            return unknown;
        return a[0] ? wrong : (struct sbi_result){ 0, SBI_HART_STARTED };
    case SBI_SRST:
        if (function == SBI_SRST_RESET)
            end(a[1] ? SWITCH_FAIL : SWITCH_OFF);
        return unknown;
    case SBI_DBCN:
        if (function == DBCN_WRITE_BYTE)
            put(a[0]);
        else if (function == SBI_DBCN_WRITE)
            for (uint64_t i = 0; i < a[0]; i++)
                put(((const char *)a[1])[i]);
        else
            return unknown;
        return (struct sbi_result){ 0, function == SBI_DBCN_WRITE ? a[0] : 0 };
    default: return unknown;
    }
}

void firmware_call(uint64_t *x)
{
    if (csr_read(mcause) != CALL_FROM_KERNEL)
        end(SWITCH_FAIL);
    struct sbi_result result = answer(x[17], x[16], &x[10]);
    x[10] = result.error;
    x[11] = result.value;
    csr_write(mepc, csr_read(mepc) + 4);
}
