/* Supervisor CSRs and counters. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* By number: assemblers know the names only with the extensions Sstc and Ssaia switched on. */
#define CSR_STIMECMP 0x14d
#define CSR_SISELECT 0x150
#define CSR_SIREG    0x151
#define CSR_STOPEI   0x15c

#define SSTATUS_SIE  (1ul << 1)
#define SSTATUS_SPIE (1ul << 5)
#define SSTATUS_SPP  (1ul << 8)
#define SSTATUS_VS_INITIAL (1ul << 9)
#define SSTATUS_VS   (3ul << 9)
#define SSTATUS_FS_INITIAL (1ul << 13)
#define SSTATUS_FS   (3ul << 13)

/* Bits of sie and sip; also the codes of scause. */
#define IRQ_SOFTWARE 1
#define IRQ_TIMER    5
#define IRQ_EXTERNAL 9
#define SCAUSE_INTERRUPT (1ul << 63)

#define STRINGIFY_(x) #x
#define STRINGIFY(x)  STRINGIFY_(x)

#define csr_read(csr) ({ uint64_t value_; __asm__ volatile("csrr %0, " STRINGIFY(csr) : "=r"(value_) :: "memory"); value_; })
#define csr_write(csr, value) __asm__ volatile("csrw " STRINGIFY(csr) ", %0" :: "rK"((uint64_t)(value)) : "memory")
#define csr_swap(csr, value) ({ uint64_t old_; __asm__ volatile("csrrw %0, " STRINGIFY(csr) ", %1" : "=r"(old_) : "rK"((uint64_t)(value)) : "memory"); old_; })
#define csr_set(csr, bits)    __asm__ volatile("csrs " STRINGIFY(csr) ", %0" :: "rK"((uint64_t)(bits)) : "memory")
#define csr_clear(csr, bits)  __asm__ volatile("csrc " STRINGIFY(csr) ", %0" :: "rK"((uint64_t)(bits)) : "memory")

/* Ticks of the machine's clock; machine.timebase_hz of them are a second. */
static inline uint64_t read_time(void) { return csr_read(time); }

static inline void interrupts_on(void)  { csr_set(sstatus, SSTATUS_SIE); }
static inline void interrupts_off(void) { csr_clear(sstatus, SSTATUS_SIE); }

/* Sleeps until an interrupt that sie enables is pending, whether or not sstatus lets it through. */
static inline void wait_for_interrupt(void) { __asm__ volatile("wfi" ::: "memory"); }

/* Zihintpause. An older hart takes it for a fence that orders nothing. */
static inline void pause_hint(void) { __asm__ volatile(".insn i 0x0f, 0, x0, x0, 0x010" ::: "memory"); }
