/* A reader of flattened device trees (Devicetree Specification 0.4, chapter 5). It never reads outside of the tree's own
 * size: a broken tree has less in it, that is all. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FDT_MAX_DEPTH 16

struct fdt {
    const uint8_t *structure;
    uint32_t structure_size;
    const char *strings;
    uint32_t strings_size;
};

/* A place in the tree. All zeros is the place before the root. */
struct fdt_node {
    uint32_t properties; /* offset of the first token after the node's name */
    int depth;           /* the root has 1 */
    const char *name;    /* with its unit address: "cpu@0" */
    struct {
        uint32_t address, size;
    } cells[FDT_MAX_DEPTH]; /* #address-cells and #size-cells of the node at each depth on the path to here */
};

/* Returns false if there is no device tree at `blob`. */
bool fdt_open(struct fdt *fdt, const void *blob);

/* Moves to the next node, children before siblings. Returns false after the last. */
bool fdt_next(const struct fdt *fdt, struct fdt_node *node);

/* True if the node's name, without unit address, is `name`. */
bool fdt_is_named(const struct fdt_node *node, const char *name);

/* The node's property and its length, or NULL. */
const void *fdt_property(const struct fdt *fdt, const struct fdt_node *node, const char *name, uint32_t *length);

/* A property that is one string, or NULL if it isn't there or isn't one. */
const char *fdt_string(const struct fdt *fdt, const struct fdt_node *node, const char *name);

/* True if the property is a list of strings that has `value` in it. */
bool fdt_list_has(const struct fdt *fdt, const struct fdt_node *node, const char *name, const char *value);

/* The 32-bit big-endian cell number `index` of a property. Returns false if it isn't there. */
bool fdt_cell(const struct fdt *fdt, const struct fdt_node *node, const char *name, uint32_t index, uint32_t *value);

/* First address and size of `reg` (size 0 where the parent has no size cells). Returns false if there is none. */
bool fdt_reg(const struct fdt *fdt, const struct fdt_node *node, uint64_t *address, uint64_t *size);
