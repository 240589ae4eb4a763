/* The lowest task: busy from the start of each of its periods until a share of the period is over, like the RTOS load of the SPUMONE thesis. */
#include "demo.h"
#include "machine.h"

static StackType_t stack[512];
static StaticTask_t task;

/* Instructions between two looks at the clock: about 1 us, by which the burner can end late. A loop of nothing but clock reads
 * makes an emulated run take twice as long, as each of them costs the emulator a hundred ordinary instructions. */
#define INSTRUCTIONS_PER_LOOK 256

static inline void compute(void)
{
    for (int i = 0; i < INSTRUCTIONS_PER_LOOK / 8; i++)
        __asm__ volatile("nop; nop; nop; nop; nop; nop");
}

/* One step of splitmix64: a number that looks random, from any seed. */
static uint64_t scramble(uint64_t seed)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void run(void *unused)
{
    (void)unused;
    TickType_t period = parameters.burn_period_us / parameters.tick_us;
    uint64_t busy = us_to_ticks(parameters.burn_period_us * parameters.burn_percent / 100);
    TickType_t release = 0;
    if (parameters.seed != 0)
        xTaskDelayUntil(&release, 1 + scramble(parameters.seed) % period);
    for (;;) {
        uint64_t end = port_tick_deadline(release) + busy;
        while (read_time() < end)
            compute();
        xTaskDelayUntil(&release, period);
    }
}

void burner_create(void)
{
    if (parameters.burn_percent > 0)
        xTaskCreateStatic(run, "burner", sizeof stack / sizeof *stack, NULL, PRIORITY_BURNER, stack, &task);
}
