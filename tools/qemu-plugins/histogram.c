/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "histogram.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

/* The bin of `value`, or the empty slot for it. There is always one: the table is at most half full. */
static struct histogram_bin *find(const struct histogram *h, uint64_t value)
{
    size_t mask = h->capacity - 1;
    size_t at = (size_t)(value * 0x9e3779b97f4a7c15u >> 32) & mask; /* Fibonacci hashing */
    while (h->slots[at].occurrences && h->slots[at].value != value) at = (at + 1) & mask;
    return &h->slots[at];
}

static void grow(struct histogram *h)
{
    struct histogram old = *h;
    h->capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY;
    h->slots = calloc(h->capacity, sizeof *h->slots);
    if (!h->slots) {
        fprintf(stderr, "paths: no memory for %zu histogram bins\n", h->capacity);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].occurrences) *find(h, old.slots[i].value) = old.slots[i];
    free(old.slots);
}

void histogram_add(struct histogram *h, uint64_t value)
{
    if (h->used * 2 >= h->capacity) grow(h);
    struct histogram_bin *bin = find(h, value);
    if (!bin->occurrences++) {
        bin->value = value;
        h->used++;
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = ((const struct histogram_bin *)a)->value, y = ((const struct histogram_bin *)b)->value;
    return (x > y) - (x < y);
}

const struct histogram_bin *histogram_sort(struct histogram *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->capacity; i++)
        if (h->slots[i].occurrences) h->slots[n++] = h->slots[i];
    if (n) qsort(h->slots, n, sizeof *h->slots, by_value);
    return h->slots;
}
