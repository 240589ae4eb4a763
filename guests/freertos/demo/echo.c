/* The task that answers another guest: what comes through the guest's first channel goes back. The bell's handler only wakes it. With `echo_polls` it looks at the
 * memory instead, and nobody rings: then tasks below it have their turn when all has come. With `echo_pause_us` it sleeps so long before it answers, and tells the other end for how
 * long that was: it is no part of the way. */
#include "demo.h"
#include "args.h"
#include "channel.h"
#include "channel_pause.h"
#include "channel_queue.h"
#include "console.h"
#include "machine.h"
#include "trap.h"

static StackType_t stack[512];
static StaticTask_t task;
static TaskHandle_t handle;
static struct channel channel;
static struct irqchip irqchip;
static uint64_t wanted, polls, pause_us;
/* What came: numbers, those that weren't the next after the last, and bells. */
static uint64_t items, wrong, bells;

static BaseType_t external(void)
{
    BaseType_t must_switch = pdFALSE;
    uint32_t source = irqchip_claim(&irqchip);
    if (source == channel.source && channel_heard(&channel)) {
        bells++;
        vTaskNotifyGiveFromISR(handle, &must_switch);
    }
    irqchip_complete(&irqchip, source);
    return must_switch;
}

/* Up to the tick that is so many whole ticks after the last one. */
static void pause_before_answer(struct channel_queue *out)
{
    uint64_t begin = read_time();
    TickType_t now = xTaskGetTickCount();
    xTaskDelayUntil(&now, pause_us / parameters.tick_us);
    out->kept_ns += ticks_to_ns(read_time() - begin);
}

static void run(void *unused)
{
    (void)unused;
    struct channel_queue *in = channel_queue_of(channel.memory, channel.position ^ 1);
    struct channel_queue *out = channel_queue_of(channel.memory, channel.position);
    uint64_t item, last = 0;
    if (!polls) {
        port_on_external(external);
        channel_listen(&channel, &irqchip);
    }
    for (;;) {
        bool answers = false;
        if (pause_us && !channel_is_empty(in))
            pause_before_answer(out);
        while (channel_take(in, &item)) {
            wrong += item != last + 1;
            last = item;
            items++;
            /* The other one takes as many back as it has sent, so there is room. */
            if (!channel_put(out, item))
                fail("the channel is full: who sends doesn't take what comes back");
            answers = true;
        }
        if (answers && !polls)
            channel_ring(&channel);
        if (answers && echo_is_over())
            reporter_wake();
        if (!polls || echo_is_over())
            ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    }
}

void echo_read(void)
{
    wanted = arg_number("echo", 0, 0, 1000000000);
    polls = arg_number("echo_polls", 0, 0, 1);
    pause_us = arg_number("echo_pause_us", 0, 0, UINT64_MAX);
    const char *why = channel_pause_refused(pause_us, parameters.tick_us);
    if (!why && pause_us && (polls || wanted == 0))
        why = "a pause is for numbers that come with a bell and are sent back (echo, without echo_polls)";
    if (why)
        fail("bootargs: echo_pause_us=%lu: %s", pause_us, why);
}

bool echo_is_wanted(void) { return wanted != 0; }

bool echo_is_over(void) { return items >= wanted; }

void echo_create(void)
{
    if (wanted == 0)
        return;
    if (!channel_find(&channel, 0))
        fail("bootargs: echo=%lu, but this guest has no channel", wanted);
    irqchip = irqchip_find(machine.boot_hart);
    handle = xTaskCreateStatic(run, "echo", sizeof stack / sizeof *stack, NULL, PRIORITY_ECHO, stack, &task);
}

bool echo_print_result(void)
{
    bool ok = wrong == 0;
    print("@result {\"job\":\"echo\",\"items\":%lu,\"wrong\":%lu,\"bells\":%lu,\"ok\":%s}\n", items, wrong, bells, ok ? "true" : "false");
    return ok;
}
