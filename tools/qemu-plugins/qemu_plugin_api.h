/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's public plugin API, version 4, that these plugins use.
 *
 * Debian ships no qemu-plugin.h, so the declarations are our own. They are written after the API's description in
 * QEMU's manual ("QEMU TCG Plugins").
 */
#ifndef QEMU_PLUGIN_API_H
#define QEMU_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library hides everything but the two symbols that QEMU looks up. */
#define PLUGIN_EXPORT __attribute__((visibility("default")))
#define PLUGIN_API_VERSION 4

typedef uint64_t plugin_id;

struct qemu_plugin_tb;   /* a translation block while it is being translated */
struct qemu_plugin_insn; /* one guest instruction of it */

/* What QEMU tells a plugin about itself at installation. */
struct qemu_info {
    const char *target_name;
    struct {
        int min;
        int cur;
    } api_version;
    bool system_emulation;
    struct { /* only if system_emulation */
        int smp_vcpus;
        int max_vcpus;
    } system;
};

/* Whether generated code has to write the guest's registers to memory before the callback. (QEMU's manual calls the
   second one QEMU_PLUGIN_CB_R_REGS.) */
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_CB_READS_REGS = 1 };

/* Which memory accesses a callback is for; an atomic instruction does both. */
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_READS = 1, QEMU_PLUGIN_MEM_WRITES = 2 };

/* An access, as a memory callback is told of it. Its lowest bits are the index of the accelerator's MMU mode, as in the
   calls that generated code makes; the manual calls the whole opaque. */
typedef uint32_t qemu_plugin_access;
struct qemu_plugin_hwaddr;

typedef void vcpu_callback(plugin_id, unsigned vcpu);
typedef void translate_callback(plugin_id, struct qemu_plugin_tb *);
typedef void exit_callback(plugin_id, void *data);
typedef void exec_callback(unsigned vcpu, void *data);
typedef void memory_callback(unsigned vcpu, uint32_t access, uint64_t address, void *data);

void qemu_plugin_register_vcpu_init_cb(plugin_id, vcpu_callback *);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, translate_callback *);
void qemu_plugin_register_atexit_cb(plugin_id, exit_callback *, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, exec_callback *, enum qemu_plugin_cb_flags,
                                          void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, exec_callback *, enum qemu_plugin_cb_flags,
                                            void *data);
/* After the instruction's accesses; a device has seen them by then. */
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, memory_callback *, enum qemu_plugin_cb_flags,
                                      enum qemu_plugin_mem_rw, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
/* Host address of the instruction's bytes, NULL if they aren't in RAM or ROM. */
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
/* Copies at most `size` bytes of the instruction; returns how many. */
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *to, size_t size);

unsigned qemu_plugin_mem_size_shift(qemu_plugin_access);
/* Where an access went; only in its callback. */
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_access, uint64_t address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

/* The registers that a debugger would see, CSRs among them. Arrays are GLib's, of which this much is public. */
struct g_array {
    void *data;
    unsigned length;
};
struct g_byte_array {
    uint8_t *data;
    unsigned length;
};
struct qemu_plugin_register {
    void *handle;
    const char *name, *feature;
};
struct g_array *qemu_plugin_get_registers(void);
/* Appends the value to the array; returns its length. In a hart's thread only. */
int qemu_plugin_read_register(void *handle, struct g_byte_array *);
struct g_byte_array *g_byte_array_new(void);
struct g_byte_array *g_byte_array_set_size(struct g_byte_array *, unsigned);

/* What QEMU looks up in a plugin. */
PLUGIN_EXPORT extern int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(plugin_id, const struct qemu_info *, int argc, char **argv);

#endif
