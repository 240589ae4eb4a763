/* A disk behind virtio over MMIO (Virtual I/O Device specification 1.2, 4.2 and 5.2), which is asked, not heard: no interrupts. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define DISK_SECTOR    512u
#define DISK_TRANSFERS 2

struct disk_transfer {
    bool is_write; /* to the disk */
    uint32_t bytes; /* a multiple of DISK_SECTOR */
    volatile void *data;
    uint64_t sector;
};

/* The disk in a slot of QEMU's virt, 0 to 7. Ends the guest with a message if none is there. */
void disk_attach(uint64_t slot);

/* What the device itself says of a former life: its status register, and whether it has a queue. Both are 0 after a reset. */
uint32_t disk_status(void);
uint32_t disk_has_queue(void);

/* Has it stored nothing to the queue since the guest began? */
bool disk_is_untouched(void);

/* Resets it and gives it an empty queue. Ends the guest with a message if the device wants features. */
void disk_start(void);

/* Asks for so many transfers at once, at most DISK_TRANSFERS. All that were asked for before must be done. */
void disk_ask(const struct disk_transfer *transfers, unsigned count);

/* Waits until so many of those that were asked for since `disk_start` are done, 20 s at most. How many are. */
unsigned disk_wait(unsigned count);

/* Which was done first of the transfers that were asked for first; and whether one of the last ones has worked. */
unsigned disk_first_done(void);
bool disk_has_worked(unsigned transfer);
