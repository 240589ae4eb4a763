/* A position-independent program: is it where it should be (at=ADDRESS), and are all the addresses that it holds those of what it means? */
#include "args.h"
#include "console.h"
#include "start.h"

void _start(void);

static uint64_t doubled(uint64_t n) { return 2 * n; }
static uint64_t squared(uint64_t n) { return n * n; }

struct part {
    const char *name;
    uint64_t (*function)(uint64_t);
    const struct part *next;
    uint64_t result; /* of 7 */
};

/* Addresses of text, of code, and of what holds addresses itself; among them words that must be left alone. Volatile, so that all of it is
 * read from memory. */
static const struct part parts[] = {
    { "doubled", doubled, &parts[1], 14 },
    { "squared", squared, &parts[2], 49 },
    { "doubled", doubled, NULL, 14 },
};
static const struct part *const volatile first = parts;
static uint64_t zeros[8];
static uint64_t *const volatile in_bss = &zeros[7];

static bool same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

bool guest_main(void)
{
    uint64_t at = arg_number("at", 0, 0, UINT64_MAX);
    args_finish();
    uint64_t start = (uint64_t)_start;
    unsigned right = 0, wrong = start != at;
    const char *name = "doubled";
    for (const struct part *part = first; part; part = part->next) {
        bool holds = same(part->name, name) && part->function(7) == part->result;
        holds ? right++ : wrong++;
        name = same(name, "doubled") ? "squared" : "doubled";
    }
    wrong += *in_bss != 0 || (uint64_t)in_bss != (uint64_t)&zeros[7];
    print("@result {\"job\":\"pie\",\"start\":%lu,\"right\":%u,\"wrong\":%u,\"ok\":%s}\n", start, right, wrong,
          right == 3 && wrong == 0 ? "true" : "false");
    return true;
}
