#include "record.h"
#include "console.h"

static uint64_t sum, program;
static unsigned index;
static bool is_aloud, is_begun;

static uint64_t mixed(uint64_t state, uint64_t value)
{
    state = (state ^ value) * 0x9e3779b97f4a7c15ul;
    return state ^ state >> 29;
}

void record_begin(uint64_t number, bool aloud)
{
    sum = program = number;
    index = 0;
    is_aloud = aloud;
    is_begun = false;
}

static void show(const char *name, uint64_t value)
{
    if (!is_aloud)
        return;
    if (!is_begun)
        print("@record %lu/%u", program, index);
    is_begun = true;
    print(" %s=%lx", name, value);
}

void record(const char *name, uint64_t value)
{
    sum = mixed(sum, value);
    show(name, value);
}

void record_all(const char *name, const uint64_t *values, unsigned count)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < count; i++)
        all = mixed(all, values[i]);
    record(name, all);
}

void record_code(const uint16_t *code, unsigned bytes)
{
    enum { IN_A_LINE = 32 };
    for (unsigned i = 0; is_aloud && i < bytes / 2; i++) {
        if (i % IN_A_LINE == 0)
            print("@code %x", 2 * i);
        print(" %x", code[i]);
        if ((i + 1) % IN_A_LINE == 0 || i + 1 == bytes / 2)
            print("\n");
    }
}

void record_fact(const char *name, uint64_t which, uint64_t of, uint64_t value)
{
    if (is_aloud)
        print("@%s %lu %lu %lx\n", name, which, of, value);
}

void record_end(void)
{
    if (is_begun)
        print("\n");
    is_begun = false;
    index++;
}

uint64_t record_sum(void) { return sum; }
