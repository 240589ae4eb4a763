/* How long an end of a channel may keep what came before it sends it back. With a pause who has sent is asleep when the answer comes, and has to be woken, whatever hart either has. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Who has sent waits for so long at most, and gives up. */
#define CHANNEL_PATIENCE_US 1000000

/* Why that is no pause for an end that wakes at each tick; NULL if it is one. */
static inline const char *channel_pause_refused(uint64_t pause_us, uint64_t tick_us)
{
    if (pause_us >= CHANNEL_PATIENCE_US)
        return "who has sent gives up after a second, so a pause must be shorter";
    return pause_us % tick_us ? "a pause must be a number of whole ticks" : NULL;
}
