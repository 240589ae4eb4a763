/* Which samples count. The first ones of a run are those of a system that starts: caches of the kernel are empty, pages and threads are touched for the first time. They say nothing of
 * how it goes on, so a run can leave some out. For programs with or without an operating system. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Zeros count all. */
struct samples {
    uint64_t uncounted; /* so many of the first */
    uint64_t taken;     /* so far, those included */
};

/* Whether that leaves anything to tell of so many samples. */
static inline bool samples_leave_some(uint64_t uncounted, uint64_t all) { return uncounted < all; }

/* Takes one. Whether it counts. */
static inline bool sample_counts(struct samples *samples) { return samples->taken++ >= samples->uncounted; }
