/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts how often each value occurred, exactly: an open-addressing hash table that grows. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

struct histogram_bin {
    uint64_t value;
    uint64_t occurrences; /* 0: an empty slot */
};

struct histogram { /* all zero: empty */
    struct histogram_bin *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* distinct values */
};

/* Exits QEMU with a message if there is no memory left. */
void histogram_add(struct histogram *, uint64_t value);
/* The bins by rising value, `used` of them. Sorts in place: nothing can be added afterwards. */
const struct histogram_bin *histogram_sort(struct histogram *);

#endif
