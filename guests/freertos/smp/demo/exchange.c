/* Two tasks on the first core and the last: numbers go from one to the other through a short queue, a semaphore comes back for each few, and both count
 * under a mutex. So they block each other and wake each other all the time. */
#include "demo.h"
#include "console.h"
#include "machine.h"
#include "queue.h"
#include "semphr.h"

#define QUEUE_LENGTH   4
#define ITEMS_PER_BACK 8
/* Most ticks that the receiver waits at the end. */
#define MOST_LOOKS     1000

static uint64_t queue_items[QUEUE_LENGTH];
static StaticQueue_t queue_memory;
static StaticSemaphore_t back_memory, mutex_memory;
static QueueHandle_t queue;
static SemaphoreHandle_t back, mutex;

static StackType_t stacks[2][512];
static StaticTask_t tasks[2];

static uint64_t begun, ended; /* `time` */
static uint64_t wrong;        /* items that weren't those that came next */
static uint64_t counted;      /* under the mutex, by both */
static volatile bool over;

/* Reading, waiting and writing: what a broken mutex would lose. */
static void count_one(void)
{
    xSemaphoreTake(mutex, portMAX_DELAY);
    uint64_t before = *(volatile uint64_t *)&counted;
    for (int i = 0; i < 20; i++)
        portNOP();
    *(volatile uint64_t *)&counted = before + 1;
    xSemaphoreGive(mutex);
}

static void send(void *unused)
{
    (void)unused;
    begun = read_time();
    for (uint64_t item = 0; item < parameters.items; item++) {
        xQueueSend(queue, &item, portMAX_DELAY);
        count_one();
        if (item % ITEMS_PER_BACK == ITEMS_PER_BACK - 1)
            xSemaphoreTake(back, portMAX_DELAY);
    }
    vTaskSuspend(NULL);
}

static void receive(void *unused)
{
    (void)unused;
    for (uint64_t next = 0; next < parameters.items; next++) {
        uint64_t item;
        xQueueReceive(queue, &item, portMAX_DELAY);
        wrong += item != next;
        count_one();
        if (next % ITEMS_PER_BACK == ITEMS_PER_BACK - 1)
            xSemaphoreGive(back);
    }
    ended = read_time();
    /* The sender may have its last one to count. If that never comes, something is wrong, and the result says so. */
    for (unsigned looks = 0; looks < MOST_LOOKS && *(volatile uint64_t *)&counted < 2 * parameters.items; looks++)
        vTaskDelay(1);
    over = true;
    reporter_wake();
    vTaskSuspend(NULL);
}

bool exchange_is_over(void) { return over || parameters.items == 0; }

void exchange_create(void)
{
    if (parameters.items == 0)
        return;
    queue = xQueueCreateStatic(QUEUE_LENGTH, sizeof *queue_items, (uint8_t *)queue_items, &queue_memory);
    back = xSemaphoreCreateCountingStatic(1, 0, &back_memory);
    mutex = xSemaphoreCreateMutexStatic(&mutex_memory);
    task_create(send, "send", NULL, PRIORITY_EXCHANGE, 0, stacks[0], sizeof stacks[0] / sizeof *stacks[0], &tasks[0]);
    task_create(receive, "receive", NULL, PRIORITY_EXCHANGE, CORES - 1, stacks[1], sizeof stacks[1] / sizeof *stacks[1], &tasks[1]);
}

bool exchange_print_result(void)
{
    if (parameters.items == 0)
        return true;
    bool ok = wrong == 0 && counted == 2 * parameters.items;
    print("@result {\"job\":\"exchange\",\"cores\":%d,\"items\":%lu,\"wrong\":%lu,\"counted\":%lu,\"item_ns\":%lu,\"ok\":%s}\n", CORES, parameters.items,
          wrong, counted, ticks_to_ns(ended - begun) / parameters.items, ok ? "true" : "false");
    return ok;
}
