/* The transition task (LiSTEE RT, 4.6): whenever it runs, the core is the other guests', until an interrupt for this one. So its priority says before which tasks of
 * FreeRTOS they go. */
#include "demo.h"
#include "ainori_sbi.h"
#include "args.h"
#include "sbi.h"
#include "trap.h"

#define NO_PRIORITY UINT64_MAX

static StackType_t stack[configMINIMAL_STACK_SIZE];
static StaticTask_t task;
static uint64_t priority;

static void run(void *unused)
{
    (void)unused;
    for (;;)
        sbi_call(AINORI_EID, AINORI_GIVE_WAY, 0, 0, 0);
}

void give_way_read(void)
{
    /* Above the reporter it would keep that, and the guest's end, waiting for ever. */
    priority = arg_number("give_way", NO_PRIORITY, 0, PRIORITY_REPORTER);
    if (priority != NO_PRIORITY && !sbi_probe(AINORI_EID))
        fail("bootargs: give_way=%lu, but this machine's SBI hasn't got Ainori's extension", priority);
}

void give_way_create(void)
{
    if (priority != NO_PRIORITY)
        xTaskCreateStatic(run, "give way", sizeof stack / sizeof *stack, NULL, priority, stack, &task);
}
