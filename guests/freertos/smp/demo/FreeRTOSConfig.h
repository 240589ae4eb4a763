/* How the SMP demo configures the kernel: as the demo for one core, and what several cores need. CORES comes from the Makefile. */
#pragma once
#include "../../demo/FreeRTOSConfig.h"

#define configNUMBER_OF_CORES         CORES
#define configRUN_MULTIPLE_PRIORITIES 1 /* else a core would idle while another one runs a task of higher priority */
#define configUSE_CORE_AFFINITY       1

/* Each core sleeps when it idles. The hook for one core would be called on core 0 besides. */
#undef configUSE_IDLE_HOOK
#define configUSE_IDLE_HOOK           0
#define configUSE_PASSIVE_IDLE_HOOK   1

#define configUSE_MUTEXES             1
#define configUSE_COUNTING_SEMAPHORES 1
