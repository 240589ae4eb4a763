/* The registers of an advanced PLIC's domain that it has whether it interrupts harts itself or sends messages (AIA 1.0, table 4.1). */
#pragma once
#include "irqchip.h"

#define APLIC_DOMAINCFG         0ul
#define APLIC_SOURCECFG(source) (4ul * (source))
#define APLIC_SETIP(source)     (0x1c00ul + (source) / 32 * 4)
#define APLIC_SETIPNUM          0x1cdcul
#define APLIC_SETIENUM          0x1edcul
#define APLIC_CLRIENUM          0x1fdcul
#define APLIC_TARGET(source)    (0x3000ul + 4ul * (source))

/* Section 4.5.1: interrupts are delivered; as messages. */
#define APLIC_DOMAINCFG_IE (1u << 8)
#define APLIC_DOMAINCFG_DM (1u << 2)

/* Section 4.5.2, table 4.2. */
#define APLIC_SOURCE_MODE        7u
#define APLIC_SOURCE_EDGE_RISING 4u
#define APLIC_SOURCE_LEVEL_HIGH  6u

/* Section 4.5.16: the hart index is above the rest. */
#define APLIC_TARGET_HART_SHIFT 18

static inline volatile uint32_t *aplic_register(const struct irqchip *aplic, uint64_t offset)
{
    return (volatile uint32_t *)(uintptr_t)(aplic->base + offset);
}

/* Has the source ask as `trigger` says, of the hart of `aplic`; `how`: the low bits of its target. Not enabled by that. */
void aplic_configure(const struct irqchip *aplic, uint32_t source, enum trigger trigger, uint32_t how);

bool aplic_is_pending(const struct irqchip *aplic, uint32_t source);
