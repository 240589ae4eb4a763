/* Interrupts that are counted one by one: the next one of a source is sent only when the last one has been taken. So one that finds nothing new came twice, and one
 * that isn't taken after all patience was lost; and what can only be pending or not, however often it was asked for, is one each time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Of one source. Zeros are one of which none has been sent. It may lie in memory that two guests have in common. */
struct handshake {
    uint64_t sent;    /* so many; only who sends writes this and `sent_at` */
    uint64_t sent_at; /* the last one, in ticks; a timer: when it was due */
    uint64_t taken;   /* so many; only who is interrupted writes this */
    uint64_t open;    /* who is interrupted listens */
};

static inline uint64_t handshake_sent(const struct handshake *handshake) { return __atomic_load_n(&handshake->sent, __ATOMIC_ACQUIRE); }

/* Has the last one been sent, but not taken? */
static inline bool handshake_is_due(const struct handshake *handshake)
{
    return __atomic_load_n(&handshake->taken, __ATOMIC_ACQUIRE) != handshake_sent(handshake);
}

/* Announces the next one, which the caller then sends. */
static inline void handshake_send(struct handshake *handshake, uint64_t at)
{
    handshake->sent_at = at;
    __atomic_store_n(&handshake->sent, handshake->sent + 1, __ATOMIC_RELEASE);
    __asm__ volatile("fence w, ow" ::: "memory");
}

/* It has come. */
static inline void handshake_take(struct handshake *handshake)
{
    __atomic_store_n(&handshake->taken, handshake_sent(handshake), __ATOMIC_RELEASE);
}
