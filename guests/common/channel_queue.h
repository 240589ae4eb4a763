/* Numbers that go from one end of a channel to the other, in its memory: a queue for each direction. Bells say only "look": one may stand for many numbers, and
 * another may come for none. For programs with or without an operating system. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_QUEUE_LENGTH 64

/* Written by one end (`head`, `items`, `kept_ns`), read by the other (`tail`). Zeros are an empty one: so it is when the machine starts. */
struct channel_queue {
    _Alignas(64) uint32_t head; /* so many have been put in */
    _Alignas(64) uint32_t tail; /* so many have been taken out */
    _Alignas(64) uint64_t items[CHANNEL_QUEUE_LENGTH];
    _Alignas(64) uint64_t kept_ns; /* for so long in all it has kept what came before it put its answers in, on purpose (channel_pause.h) */
};

/* The queue that the end at `position` fills. */
static inline struct channel_queue *channel_queue_of(volatile void *memory, uint32_t position)
{
    return (struct channel_queue *)(uintptr_t)memory + position;
}

/* False if there is no room. */
static inline bool channel_put(struct channel_queue *queue, uint64_t item)
{
    uint32_t head = queue->head;
    if (head - __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) >= CHANNEL_QUEUE_LENGTH)
        return false;
    __atomic_store_n(&queue->items[head % CHANNEL_QUEUE_LENGTH], item, __ATOMIC_RELAXED);
    __atomic_store_n(&queue->head, head + 1, __ATOMIC_RELEASE);
    return true;
}

static inline bool channel_is_empty(const struct channel_queue *queue) { return __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE) == queue->tail; }

/* False if there is none. */
static inline bool channel_take(struct channel_queue *queue, uint64_t *item)
{
    uint32_t tail = queue->tail;
    if (__atomic_load_n(&queue->head, __ATOMIC_ACQUIRE) == tail)
        return false;
    *item = __atomic_load_n(&queue->items[tail % CHANNEL_QUEUE_LENGTH], __ATOMIC_RELAXED);
    __atomic_store_n(&queue->tail, tail + 1, __ATOMIC_RELEASE);
    return true;
}
