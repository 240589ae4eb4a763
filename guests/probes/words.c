/* Is each message sent once that one store to an APLIC with interrupt files (AIA) makes its sources send, however many they are? All sources of the guest that need no wire send
 * theirs to the hart, by each of the registers that can have them do that; it looks into its file. */
#include "aplic.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "imsic.h"
#include "machine.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define WORDS      3
#define IDENTITIES 64
#define ARRIVES_US 20000

#define SETIP(word)     APLIC_SETIP(32 * (word))
#define SETIE(word)     (0x1e00ul + 4 * (word))
#define CLRIE(word)     (0x1f00ul + 4 * (word))
#define SOURCE_DETACHED 1u

static struct irqchip irqchip;
static unsigned sources, waiting;
/* Which identities are still to come in this turn. */
static bool awaited[IDENTITIES];

static volatile uint32_t *reg(uint64_t offset) { return aplic_register(&irqchip, offset); }

/* A store to one register for each word of sources. */
static void set_pending(void)
{
    for (unsigned word = 0; word < WORDS; word++)
        *reg(SETIP(word)) = UINT32_MAX;
}

static void enable(bool on)
{
    for (unsigned word = 0; word < WORDS; word++)
        *reg(on ? SETIE(word) : CLRIE(word)) = UINT32_MAX;
}

static void open_domain(bool on) { *reg(APLIC_DOMAINCFG) = APLIC_DOMAINCFG_DM | (on ? APLIC_DOMAINCFG_IE : 0); }

static void by_pending(void) { set_pending(); }

static void by_enable(void)
{
    enable(false);
    set_pending();
    enable(true);
}

static void by_domain(void)
{
    open_domain(false);
    set_pending();
    open_domain(true);
}

static void (*const ways[])(void) = { by_pending, by_enable, by_domain };
#define WAYS (sizeof ways / sizeof *ways)

/* The sources that there are, each with an identity of its own. */
static void find_sources(void)
{
    for (unsigned source = 1; source < 32 * WORDS; source++) {
        *reg(APLIC_SOURCECFG(source)) = SOURCE_DETACHED;
        if (*reg(APLIC_SOURCECFG(source)) != SOURCE_DETACHED)
            continue;
        uint32_t identity = ++sources;
        if (identity == IDENTITIES)
            fail("more sources than identities");
        *reg(APLIC_TARGET(source)) = irqchip.context << APLIC_TARGET_HART_SHIFT | identity;
        imsic_enable(identity);
    }
}

/* Has each come once? */
static bool arrive(void)
{
    uint64_t begin = read_time();
    while (waiting != 0) {
        uint32_t identity = imsic_claim();
        if (identity == 0 ? read_time() - begin > us_to_ticks(ARRIVES_US) : !awaited[identity])
            return false;
        waiting -= identity != 0;
        awaited[identity] = false;
    }
    bool is_over = imsic_claim() == 0;
    for (unsigned word = 0; word < WORDS; word++)
        is_over = is_over && *reg(SETIP(word)) == 0;
    return is_over;
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 100, 1, 1000000);
    args_finish();
    irqchip = irqchip_find(machine.boot_hart);
    if (irqchip.driver != &imsic_driver)
        fail("this probe needs interrupt files");
    find_sources();
    enable(true);
    open_domain(true);
    uint64_t done = 0;
    bool ok = true;
    while (ok && done < n) {
        for (uint32_t identity = 1; identity <= sources; identity++)
            awaited[identity] = true;
        waiting = sources;
        ways[done % WAYS]();
        ok = arrive();
        done += ok;
    }
    print("@result {\"job\":\"words\",\"turns\":%lu,\"sources\":%u,\"ok\":%s}\n", done, sources, ok ? "true" : "false");
    return ok;
}
