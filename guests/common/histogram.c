#include "histogram.h"
#include <stdbool.h>
#include "console.h"
#include "machine.h"

/* Pairs on a line: a line of the longest pairs still has less than 900 characters. */
#define PAIRS_PER_LINE 40

/* A value with its highest bit at 2^(SUB_BITS + k) keeps its upper SUB_BITS + 1 bits; the lower k are dropped. */
static unsigned bucket_of(uint64_t ticks)
{
    unsigned shift = 0;
    if (ticks >> HISTOGRAM_MAX_BITS)
        return HISTOGRAM_BUCKETS - 1;
    while (ticks >> (HISTOGRAM_SUB_BITS + 1)) {
        ticks >>= 1;
        shift++;
    }
    return (shift << HISTOGRAM_SUB_BITS) + ticks;
}

/* The greatest value of a bucket. */
static uint64_t upper_bound(unsigned bucket)
{
    unsigned sub = 1u << HISTOGRAM_SUB_BITS;
    unsigned shift = bucket < 2 * sub ? 0 : (bucket >> HISTOGRAM_SUB_BITS) - 1;
    return ((uint64_t)(bucket - (shift << HISTOGRAM_SUB_BITS) + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t ticks)
{
    if (histogram->count == 0 || ticks < histogram->min)
        histogram->min = ticks;
    if (ticks > histogram->max)
        histogram->max = ticks;
    histogram->count++;
    histogram->sum += ticks;
    histogram->buckets[bucket_of(ticks)]++;
}

uint64_t histogram_quantile(const struct histogram *histogram, unsigned per_mille)
{
    uint64_t wanted = (histogram->count * per_mille + 999) / 1000, seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= wanted && seen > 0)
            return upper_bound(i) < histogram->max ? upper_bound(i) : histogram->max;
    }
    return 0;
}

void histogram_print_summary(const struct histogram *h)
{
    uint64_t mean = h->count ? ticks_to_ns(h->sum) / h->count : 0;
    print("{\"min\":%lu,\"mean\":%lu,\"p50\":%lu,\"p99\":%lu,\"p999\":%lu,\"max\":%lu}", ticks_to_ns(h->min), mean,
          ticks_to_ns(histogram_quantile(h, 500)), ticks_to_ns(histogram_quantile(h, 990)),
          ticks_to_ns(histogram_quantile(h, 999)), ticks_to_ns(h->max));
}

/* Prints each bucket's bound as its distance from `origin`, in ticks, below it or above. */
static void print_buckets(const struct histogram *histogram, const char *job, const char *name, uint64_t origin, bool below)
{
    unsigned on_line = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (histogram->buckets[i] == 0)
            continue;
        if (on_line == 0)
            print("@result {\"job\":\"%s\",\"hist\":\"%s\",\"buckets\":[", job, name);
        uint64_t distance = upper_bound(i);
        uint64_t bound = !below ? origin + distance : distance < origin ? origin - distance : 0;
        print("%s[%lu,%u]", on_line ? "," : "", ticks_to_ns(bound), histogram->buckets[i]);
        if (++on_line == PAIRS_PER_LINE) {
            print("]}\n");
            on_line = 0;
        }
    }
    if (on_line)
        print("]}\n");
}

void histogram_print_buckets(const struct histogram *histogram, const char *job, const char *name)
{
    print_buckets(histogram, job, name, 0, false);
}

void spread_add(struct spread *spread, uint64_t ticks)
{
    if (ticks < spread->nominal)
        histogram_add(&spread->shorter, spread->nominal - ticks);
    else
        histogram_add(&spread->longer, ticks - spread->nominal);
}

void spread_print_summary(const struct spread *s)
{
    uint64_t count = s->shorter.count + s->longer.count, min = 0, mean = 0, max = 0;
    if (count > 0) {
        min = s->shorter.count > 0 ? s->nominal - s->shorter.max : s->nominal + s->longer.min;
        max = s->longer.count > 0 ? s->nominal + s->longer.max : s->nominal - s->shorter.min;
        mean = ticks_to_ns(s->nominal * count + s->longer.sum - s->shorter.sum) / count;
    }
    print("{\"min\":%lu,\"mean\":%lu,\"max\":%lu}", ticks_to_ns(min), mean, ticks_to_ns(max));
}

void spread_print_buckets(const struct spread *spread, const char *job, const char *name)
{
    print_buckets(&spread->shorter, job, name, spread->nominal, true);
    print_buckets(&spread->longer, job, name, spread->nominal, false);
}
