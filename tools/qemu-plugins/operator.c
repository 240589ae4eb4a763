/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * operator.so: somebody at the machine, in virtual time. Types a text on the first serial port, a character each so often, and switches the
 * machine off when it has taken too long. Beside lockstep.so both are part of the run, and so the same each time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_internals.h"
#include "qemu_plugin_api.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

enum { MOST_TYPED = 255 };

static struct {
    char text[MOST_TYPED + 1]; /* in hex on the command line: a comma or a space would not survive there */
    size_t length;
    int64_t at_ns, pace_ns; /* first character, and between two */
    int64_t stop_ns;        /* 0: never */
} options = {.pace_ns = 1000000};

static uint64_t typing[32], stopping[32]; /* room for a QEMUTimer each */

/* A character that the port has no room for is offered again: a person who types sees that nothing comes. */
static void type(void *data)
{
    static size_t typed;
    (void)data;
    struct Chardev *port = qemu_chr_find("serial0");
    if (!port) {
        fprintf(stderr, "operator: there is no serial0 to type on\n");
        exit(EXIT_FAILURE);
    }
    if (qemu_chr_be_can_write(port) > 0) qemu_chr_be_write(port, (uint8_t *)&options.text[typed++], 1);
    if (typed < options.length) timer_mod(typing, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + options.pace_ns);
}

static void stop(void *data)
{
    (void)data;
    fprintf(stderr, "operator: switched off at %" PRId64 " ns\n", options.stop_ns);
    qemu_system_shutdown_request(SHUTDOWN_CAUSE_HOST_QMP_QUIT);
}

static void on_hart(plugin_id id, unsigned index)
{
    (void)id;
    if (index != 0) return;
    if (options.length > 0) {
        timer_init_full(typing, NULL, QEMU_CLOCK_VIRTUAL, 1, 0, type, NULL);
        timer_mod(typing, options.at_ns);
    }
    if (options.stop_ns > 0) {
        timer_init_full(stopping, NULL, QEMU_CLOCK_VIRTUAL, 1, 0, stop, NULL);
        timer_mod(stopping, options.stop_ns);
    }
}

static bool parse_number(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return !errno && end != text && !*end && *value >= 0;
}

static bool parse_hex(const char *text)
{
    size_t digits = strlen(text);
    if (digits == 0 || digits % 2 != 0 || digits / 2 > MOST_TYPED) return false;
    for (size_t i = 0; i < digits / 2; i++) {
        char byte[3] = {text[2 * i], text[2 * i + 1], 0}, *end;
        options.text[i] = (char)strtol(byte, &end, 16);
        if (*end) return false;
    }
    options.length = digits / 2;
    return true;
}

static bool parse_option(const char *option)
{
    if (!strncmp(option, "type=", 5)) return parse_hex(option + 5);
    if (!strncmp(option, "at_ns=", 6)) return parse_number(option + 6, &options.at_ns);
    if (!strncmp(option, "pace_ns=", 8)) return parse_number(option + 8, &options.pace_ns);
    if (!strncmp(option, "stop_ns=", 8)) return parse_number(option + 8, &options.stop_ns);
    return false;
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    (void)info;
    if (!qemu_chr_find || !qemu_chr_be_can_write || !qemu_chr_be_write || !timer_init_full || !timer_mod ||
        !qemu_clock_get_ns || !qemu_system_shutdown_request) {
        fprintf(stderr, "operator: this QEMU doesn't export what is needed; see lockstep.so's requirements\n");
        return -1;
    }
    for (int i = 0; i < argc; i++) {
        if (parse_option(argv[i])) continue;
        fprintf(stderr,
                "operator: bad option '%s'; known: type=HEX (bytes to type, at most %d), at_ns=N (of the first), "
                "pace_ns=N (between two), stop_ns=N (0 for never)\n",
                argv[i], MOST_TYPED);
        return -1;
    }
    qemu_plugin_register_vcpu_init_cb(id, on_hart);
    return 0;
}
