/* How the demo configures the FreeRTOS kernel. What isn't here has the kernel's default. */
#pragma once
#include "trap.h"

#define configUSE_PREEMPTION           1
#define configUSE_TIME_SLICING         0 /* tasks of the same priority, in a set, go one after the other */
#define configUSE_IDLE_HOOK            1 /* sleeps */
#define configUSE_TICK_HOOK            0
#define configMAX_PRIORITIES           16
#define configMAX_TASK_NAME_LEN        12
#define configTICK_TYPE_WIDTH_IN_BITS  TICK_TYPE_WIDTH_64_BITS
#define configCHECK_FOR_STACK_OVERFLOW 2
#define configUSE_TASK_NOTIFICATIONS   1

/* Nominal: the real length of a tick is a parameter, so the demo doesn't use times in ms (pdMS_TO_TICKS). */
#define configTICK_RATE_HZ             1000

/* Nothing is allocated at run time. */
#define configSUPPORT_STATIC_ALLOCATION     1
#define configSUPPORT_DYNAMIC_ALLOCATION    0
#define configKERNEL_PROVIDED_STATIC_MEMORY 1
#define configMINIMAL_STACK_SIZE            256 /* words of 8 bytes; a task's frame alone takes 68 */

#define INCLUDE_xTaskDelayUntil 1
#define INCLUDE_vTaskSuspend    1
#define INCLUDE_vTaskDelay      1

#define configASSERT(condition) ((condition) ? (void)0 : fail("assertion failed in %s, line %d", __FILE__, __LINE__))

/* The port calls this at the start of each tick interrupt, in the manner of the kernel's trace macros. */
#include <stdint.h>
void tick_taken(uint64_t deadline, uint64_t now);
#define portTICK_TAKEN(deadline, now) tick_taken(deadline, now)
