#include "channel.h"
#include "machine.h"
#include "trap.h"

/* Registers, in words. */
enum { MASK, STATUS, POSITION, DOORBELL };
/* What rings, stored to the page of a bell. */
#define BELL 1

#define IVSHMEM 0x11101af4u

/* PCI Express Base Specification 5.0, 7.2.2: where the configuration space of function 0 of a device is. */
#define DEVICE_SHIFT   15
#define DEVICES        32
#define CAPABILITIES   0x34
#define INTERRUPT_LINE 0x3c
/* 7.8.5: Enhanced Allocation. */
#define EA_ID              0x14
#define EA_ENTRIES(header) ((header) >> 16 & 0x3f)
#define EA_SIZE(first)     (((first) & 7) + 1) /* words */
#define EA_BAR(first)      ((first) >> 4 & 0xf)
#define EA_LOW_BITS        3u

static volatile uint32_t *config_of(uint64_t bus, unsigned device, uint32_t offset)
{
    return (volatile uint32_t *)(uintptr_t)(bus + ((uint64_t)device << DEVICE_SHIFT) + (offset & ~3u));
}

static bool find_bus(uint64_t *base)
{
    uint64_t size;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (fdt_list_has(&machine.fdt, &node, "compatible", "pci-host-ecam-generic"))
            return fdt_reg(&machine.fdt, &node, base, &size);
    }
    return false;
}

/* Where the device's registers and memory are: its only capability says so. */
static void read_allocation(struct channel *channel, uint64_t bus, unsigned device)
{
    uint32_t at = *config_of(bus, device, CAPABILITIES) & 0xfc, header = *config_of(bus, device, at);
    if ((header & 0xff) != EA_ID)
        fail("the ivshmem device %u doesn't say where its registers are (capability 0x%x)", device, header);
    at += 4;
    for (uint32_t entry = 0; entry < EA_ENTRIES(header); entry++) {
        uint32_t first = *config_of(bus, device, at);
        uintptr_t base = *config_of(bus, device, at + 4) & ~EA_LOW_BITS;
        if (EA_BAR(first) == 0)
            channel->registers = (volatile uint32_t *)base;
        if (EA_BAR(first) == 2) {
            channel->memory = (volatile void *)base;
            channel->size = (uint64_t)(*config_of(bus, device, at + 8) | EA_LOW_BITS) + 1;
        }
        if (EA_BAR(first) == 4)
            channel->bell = (volatile uint32_t *)base;
        at += 4 * EA_SIZE(first);
    }
    if (!channel->registers || !channel->memory)
        fail("the ivshmem device %u has no registers or no memory", device);
}

bool channel_find(struct channel *channel, unsigned index)
{
    uint64_t bus;
    if (!find_bus(&bus))
        return false;
    *channel = (struct channel){ 0 };
    for (unsigned device = 0; device < DEVICES; device++) {
        if (*config_of(bus, device, 0) != IVSHMEM || index-- != 0)
            continue;
        read_allocation(channel, bus, device);
        channel->source = *config_of(bus, device, INTERRUPT_LINE) & 0xff;
        channel->position = channel->registers[POSITION];
        return true;
    }
    return false;
}

void channel_listen(const struct channel *channel, const struct irqchip *irqchip)
{
    irqchip_enable(irqchip, channel->source, EDGE_RISING);
    channel->registers[MASK] = 1;
}

void channel_ring(const struct channel *channel)
{
    __asm__ volatile("fence w, o" ::: "memory");
    if (channel->bell)
        *channel->bell = BELL;
    else
        channel->registers[DOORBELL] = (channel->position ^ 1) << 16;
}

bool channel_heard(const struct channel *channel)
{
    bool heard = channel->registers[STATUS];
    __asm__ volatile("fence i, r" ::: "memory");
    return heard;
}
