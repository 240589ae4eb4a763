#include "flash_device.h"
#include <stdint.h>
#include "machine.h"
#include "trap.h"

/* Two chips of 16 bits side by side, as on QEMU's virt: commands and answers stand in both halves. */
#define BOTH(value) ((uint32_t)(value) << 16 | (value))
#define QUERY      BOTH(0x98)
#define READ_ARRAY BOTH(0xff)
#define QUERY_AT   0x55 /* words */
#define ANSWER_AT  0x10

bool flash_answers(void)
{
    uint64_t base, size;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (!fdt_list_has(&machine.fdt, &node, "compatible", "cfi-flash") || !fdt_reg(&machine.fdt, &node, &base, &size))
            continue;
        volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)base;
        words[QUERY_AT] = QUERY;
        bool answers = true;
        for (unsigned i = 0; i < 3; i++)
            answers = answers && words[ANSWER_AT + i] == BOTH("QRY"[i]);
        words[QUERY_AT] = READ_ARRAY;
        return answers;
    }
    fail("the device tree has no flash");
}
