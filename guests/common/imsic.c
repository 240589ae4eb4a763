/* The hart's incoming MSI controller, with an advanced PLIC that makes messages of what wires ask (AIA 1.0, chapters 3 and 4). A source has its own number as the
 * identity of its message. */
#include "aplic.h"
#include "csr.h"
#include "imsic.h"
#include "machine.h"
#include "trap.h"

/* Section 3.9: the identity is above its priority, which is the same number. */
#define STOPEI_IDENTITY_SHIFT 16

/* siselect chooses what sireg is: nobody else uses them, as handlers only claim and complete. */
static uint64_t file_read(uint64_t select)
{
    csr_write(CSR_SISELECT, select);
    return csr_read(CSR_SIREG);
}

static void file_write(uint64_t select, uint64_t value)
{
    csr_write(CSR_SISELECT, select);
    csr_write(CSR_SIREG, value);
}

/* The hart's place among the interrupt files that an APLIC sends messages to. False if they aren't those of S-mode. */
static bool find_file(uint32_t msi_parent, uint32_t cpu_intc, uint32_t *hart_index)
{
    uint32_t phandle;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (fdt_list_has(&machine.fdt, &node, "compatible", "riscv,imsics") && fdt_cell(&machine.fdt, &node, "phandle", 0, &phandle)
            && phandle == msi_parent)
            return irqchip_context(&node, cpu_intc, hart_index);
    }
    return false;
}

volatile uint32_t *imsic_file(uint32_t cpu_intc)
{
    uint32_t hart_index;
    uint64_t base, size;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (fdt_list_has(&machine.fdt, &node, "compatible", "riscv,imsics") && irqchip_context(&node, cpu_intc, &hart_index)
            && fdt_reg(&machine.fdt, &node, &base, &size))
            return (volatile uint32_t *)(uintptr_t)(base + hart_index * IMSIC_FILE_SIZE);
    }
    return NULL;
}

/* The APLIC's hart index is the hart's place among the files where all harts are in one group. */
static bool probe(struct irqchip *imsic, const struct fdt_node *node, uint32_t cpu_intc)
{
    uint64_t size;
    uint32_t msi_parent;
    return fdt_list_has(&machine.fdt, node, "compatible", "riscv,aplic") && fdt_cell(&machine.fdt, node, "msi-parent", 0, &msi_parent)
        && fdt_reg(&machine.fdt, node, &imsic->base, &size) && find_file(msi_parent, cpu_intc, &imsic->context);
}

void imsic_enable(uint32_t identity)
{
    uint64_t bit = 1ul << identity % 64, enabled = file_read(IMSIC_EIE(identity)) | bit;
    file_write(IMSIC_EIE(identity), enabled);
    /* Bits of identities that a file hasn't got are zero (section 3.8.4). */
    if (!(file_read(IMSIC_EIE(identity)) & bit))
        fail("the hart's interrupt file has no identity %u", identity);
    file_write(IMSIC_EIDELIVERY, 1);
}

/* A message isn't sent again while the wire stays high. To set the pending bit of a level is to ask for the wire: it is pending only if that is high
 * (sections 4.7 and 4.9.2). */
static void complete(const struct irqchip *imsic, uint32_t source)
{
    if ((*aplic_register(imsic, APLIC_SOURCECFG(source)) & APLIC_SOURCE_MODE) == APLIC_SOURCE_LEVEL_HIGH)
        *aplic_register(imsic, APLIC_SETIPNUM) = source;
}

static void enable(const struct irqchip *imsic, uint32_t source, enum trigger trigger)
{
    imsic_enable(source);
    aplic_configure(imsic, source, trigger, source);
    *aplic_register(imsic, APLIC_DOMAINCFG) = APLIC_DOMAINCFG_IE | APLIC_DOMAINCFG_DM;
    *aplic_register(imsic, APLIC_SETIENUM) = source;
    /* A wire that was high before needn't have made it pending (section 4.5.2). */
    complete(imsic, source);
}

/* The APLIC keeps what isn't enabled there; all else has been sent. */
static bool is_pending(const struct irqchip *imsic, uint32_t source)
{
    return aplic_is_pending(imsic, source) || file_read(IMSIC_EIP(source)) >> source % 64 & 1;
}

static uint32_t threshold(const struct irqchip *imsic) { return (void)imsic, file_read(IMSIC_EITHRESHOLD); }

static void set_threshold(const struct irqchip *imsic, uint32_t threshold) { (void)imsic, file_write(IMSIC_EITHRESHOLD, threshold); }

/* A write, whatever is written, claims what the same instruction reads. */
uint32_t imsic_claim(void) { return csr_swap(CSR_STOPEI, 0) >> STOPEI_IDENTITY_SHIFT; }

static uint32_t claim(const struct irqchip *imsic) { return (void)imsic, imsic_claim(); }

const struct irqchip_driver imsic_driver = { "IMSIC", probe, enable, is_pending, threshold, set_threshold, claim, complete };
