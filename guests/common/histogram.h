/* A histogram of durations with exact minimum, maximum and mean. */
#pragma once
#include <stdint.h>

/* Buckets are log-linear: exact below 64 ticks, then 32 to each power of two, so a value is known to about 3 %. */
#define HISTOGRAM_SUB_BITS 5
#define HISTOGRAM_MAX_BITS 40 /* longer values (at 10 MHz more than a day) count in the last bucket */
#define HISTOGRAM_BUCKETS  ((HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

/* All zeros is an empty histogram. */
struct histogram {
    uint64_t count, sum, min, max; /* in ticks of `time`; min means nothing while count is 0 */
    uint32_t buckets[HISTOGRAM_BUCKETS];
};

/* Counts one duration, in ticks of `time`. Bounded and without division: fit for an interrupt handler. */
void histogram_add(struct histogram *histogram, uint64_t ticks);

/* Upper bound, in ticks, of the values of which `per_mille` thousandths are not greater. 0 for an empty histogram. */
uint64_t histogram_quantile(const struct histogram *histogram, unsigned per_mille);

/* Prints {"min":..,"mean":..,"p50":..,"p99":..,"p999":..,"max":..} in nanoseconds, without a newline. */
void histogram_print_summary(const struct histogram *histogram);

/* Prints the buckets that aren't empty, as lines @result {"job":JOB,"hist":NAME,"buckets":[[upper bound in ns,count],...]} of at most
 * about 900 characters. */
void histogram_print_buckets(const struct histogram *histogram, const char *job, const char *name);

/* How much durations differ from a nominal one: finer than a histogram of the durations themselves. Set `nominal`, leave the rest zero. */
struct spread {
    uint64_t nominal; /* in ticks of `time` */
    struct histogram shorter, longer; /* by how much, 0 counts as longer */
};

/* Counts one duration, in ticks of `time`. As bounded as histogram_add. */
void spread_add(struct spread *spread, uint64_t ticks);

/* Prints {"min":..,"mean":..,"max":..} of the durations in nanoseconds, without a newline; all 0 if there was none. */
void spread_print_summary(const struct spread *spread);

/* Prints the durations' buckets as histogram_print_buckets does. Below the nominal duration bounds are lower ones. */
void spread_print_buckets(const struct spread *spread, const char *job, const char *name);
