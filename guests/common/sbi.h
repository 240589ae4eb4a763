/* Calls to the SBI (RISC-V Supervisor Binary Interface, version 2.0). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sbi_result {
    long error;
    long value;
};

#define SBI_SUCCESS                0
#define SBI_ERR_FAILED            -1
#define SBI_ERR_NOT_SUPPORTED     -2
#define SBI_ERR_INVALID_PARAM     -3
#define SBI_ERR_DENIED            -4
#define SBI_ERR_INVALID_ADDRESS   -5
#define SBI_ERR_ALREADY_AVAILABLE -6

/* Those of before SBI 0.2, which answer in a0 alone. */
#define SBI_LEGACY_SET_TIMER 0
#define SBI_LEGACY_PUTCHAR   1
#define SBI_LEGACY_GETCHAR   2
#define SBI_LEGACY_CLEAR_IPI 3
#define SBI_LEGACY_SEND_IPI  4
#define SBI_LEGACY_FENCE_I   5
#define SBI_LEGACY_VMA       6
#define SBI_LEGACY_VMA_ASID  7
#define SBI_LEGACY_SHUTDOWN  8

#define SBI_BASE   0x10
#define SBI_TIME   0x54494d45
#define SBI_IPI    0x735049
#define SBI_RFENCE 0x52464e43
#define SBI_HSM    0x48534d
#define SBI_SRST   0x53525354
#define SBI_SUSP   0x53555350
#define SBI_DBCN   0x4442434e

#define SBI_BASE_SPEC_VERSION 0
#define SBI_BASE_PROBE        3
#define SBI_TIME_SET          0
#define SBI_IPI_SEND          0
#define SBI_RFENCE_I          0
#define SBI_RFENCE_VMA        1
#define SBI_RFENCE_VMA_ASID   2
#define SBI_HSM_START         0
#define SBI_HSM_STOP          1
#define SBI_HSM_STATUS        2
#define SBI_HSM_SUSPEND       3
#define SBI_SRST_RESET        0
#define SBI_SUSP_SUSPEND      0
#define SBI_DBCN_WRITE        0
#define SBI_DBCN_READ         1
#define SBI_DBCN_WRITE_BYTE   2

#define SBI_HART_STARTED 0
#define SBI_HART_STOPPED 1

#define SBI_RESET_SHUTDOWN    0
#define SBI_RESET_COLD_REBOOT 1
#define SBI_RESET_WARM_REBOOT 2
#define SBI_REASON_NONE       0
#define SBI_REASON_FAILURE    1

static inline struct sbi_result sbi_call5(long extension, long function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
                                          uint64_t a4)
{
    register uint64_t r0 __asm__("a0") = a0;
    register uint64_t r1 __asm__("a1") = a1;
    register uint64_t r2 __asm__("a2") = a2;
    register uint64_t r3 __asm__("a3") = a3;
    register uint64_t r4 __asm__("a4") = a4;
    register long r6 __asm__("a6") = function;
    register long r7 __asm__("a7") = extension;
    __asm__ volatile("ecall" : "+r"(r0), "+r"(r1) : "r"(r2), "r"(r3), "r"(r4), "r"(r6), "r"(r7) : "memory");
    return (struct sbi_result){ (long)r0, (long)r1 };
}

static inline struct sbi_result sbi_call(long extension, long function, uint64_t a0, uint64_t a1, uint64_t a2)
{
    return sbi_call5(extension, function, a0, a1, a2, 0, 0);
}

static inline bool sbi_probe(long extension)
{
    struct sbi_result result = sbi_call(SBI_BASE, SBI_BASE_PROBE, extension, 0, 0);
    return result.error == SBI_SUCCESS && result.value != 0;
}

/* `mask`: bit n stands for hart `base` + n. */
static inline long sbi_send_ipi(uint64_t mask, uint64_t base) { return sbi_call(SBI_IPI, SBI_IPI_SEND, mask, base, 0).error; }

static inline long sbi_remote_fence_i(uint64_t mask, uint64_t base)
{
    return sbi_call(SBI_RFENCE, SBI_RFENCE_I, mask, base, 0).error;
}

/* `size` in bytes; start 0 and size -1 mean the whole address space. */
static inline long sbi_remote_sfence_vma(uint64_t mask, uint64_t base, uint64_t start, uint64_t size)
{
    return sbi_call5(SBI_RFENCE, SBI_RFENCE_VMA, mask, base, start, size, 0).error;
}

static inline long sbi_hart_start(uint64_t hart, uint64_t address, uint64_t opaque)
{
    return sbi_call(SBI_HSM, SBI_HSM_START, hart, address, opaque).error;
}

/* Does not return where it succeeds. */
static inline long sbi_hart_stop(void) { return sbi_call(SBI_HSM, SBI_HSM_STOP, 0, 0, 0).error; }

static inline struct sbi_result sbi_hart_status(uint64_t hart) { return sbi_call(SBI_HSM, SBI_HSM_STATUS, hart, 0, 0); }

/* Ends the guest. Stops this hart for good where the SBI has no system reset. */
static inline __attribute__((noreturn)) void sbi_shutdown(long reason)
{
    sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_SHUTDOWN, reason, 0);
    for (;;)
        __asm__ volatile("csrw sie, zero; wfi");
}
