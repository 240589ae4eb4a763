#include "fdt.h"
#include <string.h>

#define MAGIC      0xd00dfeed
#define BEGIN_NODE 1
#define END_NODE   2
#define PROP       3
#define NOP        4
#define END        9

/* Offsets of the header's fields. */
#define HEADER_TOTAL_SIZE       4
#define HEADER_STRUCTURE        8
#define HEADER_STRINGS         12
#define HEADER_STRINGS_SIZE    32
#define HEADER_STRUCTURE_SIZE  36

static uint32_t big_endian(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

bool fdt_open(struct fdt *fdt, const void *blob)
{
    const uint8_t *header = blob;
    if (!blob || (uintptr_t)blob % 4 != 0 || big_endian(header) != MAGIC)
        return false;
    uint32_t total = big_endian(header + HEADER_TOTAL_SIZE);
    uint32_t structure = big_endian(header + HEADER_STRUCTURE);
    uint32_t strings = big_endian(header + HEADER_STRINGS);
    fdt->structure_size = big_endian(header + HEADER_STRUCTURE_SIZE);
    fdt->strings_size = big_endian(header + HEADER_STRINGS_SIZE);
    if (structure > total || fdt->structure_size > total - structure || strings > total || fdt->strings_size > total - strings)
        return false;
    fdt->structure = header + structure;
    fdt->strings = (const char *)header + strings;
    return true;
}

/* One token of the structure block. */
struct token {
    uint32_t kind;
    uint32_t next;       /* offset of the next token */
    const char *name;    /* of a node or property */
    const uint8_t *data; /* of a property */
    uint32_t length;
};

/* Reads the token at `offset`. A token that doesn't fit reads as the end. */
static struct token token_at(const struct fdt *fdt, uint32_t offset)
{
    struct token token = { .kind = END };
    uint32_t left = offset <= fdt->structure_size ? fdt->structure_size - offset : 0;
    if (left < 4)
        return token;
    const uint8_t *p = fdt->structure + offset;
    uint32_t kind = big_endian(p), size = 4;
    if (kind == BEGIN_NODE) {
        token.name = (const char *)p + 4;
        size_t length = strnlen(token.name, left - 4);
        if (length == left - 4)
            return token;
        size += length + 1;
    } else if (kind == PROP) {
        if (left < 12)
            return token;
        token.length = big_endian(p + 4);
        uint32_t name = big_endian(p + 8);
        if (token.length > left - 12 || name >= fdt->strings_size
            || strnlen(fdt->strings + name, fdt->strings_size - name) == fdt->strings_size - name)
            return token;
        token.name = fdt->strings + name;
        token.data = p + 12;
        size = 12 + token.length;
    } else if (kind != END_NODE && kind != NOP) {
        return token;
    }
    token.kind = kind;
    token.next = offset + ((size + 3) & ~3u);
    return token;
}

bool fdt_next(const struct fdt *fdt, struct fdt_node *node)
{
    for (uint32_t offset = node->properties;;) {
        struct token token = token_at(fdt, offset);
        offset = token.next;
        if (token.kind == END_NODE) {
            node->depth--;
        } else if (token.kind == BEGIN_NODE) {
            if (node->depth < 0 || ++node->depth >= FDT_MAX_DEPTH)
                return false;
            node->name = token.name;
            node->properties = offset;
            /* The defaults are those of the specification, section 2.3.5. */
            if (!fdt_cell(fdt, node, "#address-cells", 0, &node->cells[node->depth].address))
                node->cells[node->depth].address = 2;
            if (!fdt_cell(fdt, node, "#size-cells", 0, &node->cells[node->depth].size))
                node->cells[node->depth].size = 1;
            return true;
        } else if (token.kind == END) {
            return false;
        }
    }
}

bool fdt_is_named(const struct fdt_node *node, const char *name)
{
    size_t length = strlen(name);
    return strncmp(node->name, name, length) == 0 && (node->name[length] == '\0' || node->name[length] == '@');
}

const void *fdt_property(const struct fdt *fdt, const struct fdt_node *node, const char *name, uint32_t *length)
{
    struct token token = token_at(fdt, node->properties);
    for (; token.kind == PROP || token.kind == NOP; token = token_at(fdt, token.next)) {
        if (token.kind == PROP && strcmp(token.name, name) == 0) {
            *length = token.length;
            return token.data;
        }
    }
    return NULL;
}

const char *fdt_string(const struct fdt *fdt, const struct fdt_node *node, const char *name)
{
    uint32_t length;
    const char *text = fdt_property(fdt, node, name, &length);
    return text && length > 0 && text[length - 1] == '\0' ? text : NULL;
}

bool fdt_list_has(const struct fdt *fdt, const struct fdt_node *node, const char *name, const char *value)
{
    uint32_t length;
    const char *text = fdt_property(fdt, node, name, &length);
    if (!text || length == 0 || text[length - 1] != '\0')
        return false;
    for (const char *end = text + length; text < end; text += strlen(text) + 1) {
        if (strcmp(text, value) == 0)
            return true;
    }
    return false;
}

bool fdt_cell(const struct fdt *fdt, const struct fdt_node *node, const char *name, uint32_t index, uint32_t *value)
{
    uint32_t length;
    const uint8_t *cells = fdt_property(fdt, node, name, &length);
    if (!cells || length / 4 <= index)
        return false;
    *value = big_endian(cells + index * 4);
    return true;
}

bool fdt_reg(const struct fdt *fdt, const struct fdt_node *node, uint64_t *address, uint64_t *size)
{
    uint32_t cell;
    uint32_t address_cells = node->depth > 1 ? node->cells[node->depth - 1].address : 0;
    uint32_t size_cells = node->depth > 1 ? node->cells[node->depth - 1].size : 0;
    if (address_cells < 1 || address_cells > 2 || size_cells > 2)
        return false;
    *address = *size = 0;
    for (uint32_t i = 0; i < address_cells + size_cells; i++) {
        if (!fdt_cell(fdt, node, "reg", i, &cell))
            return false;
        uint64_t *part = i < address_cells ? address : size;
        *part = *part << 32 | cell;
    }
    return true;
}
