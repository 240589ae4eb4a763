/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest asks for shutdown with a store to a device. That leaves a request for QEMU's main thread, which stops the
 * machine when it comes to it: the guest executes some more instructions until then, and how many depends on how busy
 * the host is. So the end is the store.
 *
 * QEMU ends a translation block after each access to a device. (It knows of the access only when it is executed; if
 * that is in the middle of a block, it leaves the block there and executes the instruction once more in a block of its
 * own, which has callbacks for memory accesses only.) So it is enough to look after the last instruction of each block.
 */
#include "end.h"

#include "qemu_internals.h"

const char *end_missing_symbol(void)
{
    if (!qemu_shutdown_requested_get) return "qemu_shutdown_requested_get";
    if (!runstate_is_running) return "runstate_is_running";
    if (!bql_lock_impl) return "bql_lock_impl";
    if (!bql_unlock) return "bql_unlock";
    return bql_locked ? NULL : "bql_locked";
}

/* With the lock held, because the main thread takes the request away and stops the machine without letting go of the
   lock: one of the two is always seen. */
bool end_was_asked(void)
{
    bool locked_before = bql_locked();
    if (!locked_before) bql_lock_impl(__FILE__, __LINE__);
    bool asked = qemu_shutdown_requested_get() != 0 || !runstate_is_running();
    if (!locked_before) bql_unlock();
    return asked;
}

static void on_store(unsigned vcpu, uint32_t access, uint64_t address, void *asked)
{
    (void)vcpu, (void)access, (void)address;
    if (end_was_asked()) ((void (*)(void))(uintptr_t)asked)();
}

void end_watch(struct qemu_plugin_tb *tb, void (*asked)(void))
{
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);
    qemu_plugin_register_vcpu_mem_cb(last, on_store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_WRITES,
                                     (void *)(uintptr_t)asked);
}
