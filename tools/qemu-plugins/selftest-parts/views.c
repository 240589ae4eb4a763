/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How far the harts' views of time differ: each publishes its `time` without end, and compares the others' with its
   own. `ahead` is the most that a published time was in the reader's future, in ticks. */
#include "guest.h"

enum { LOOKS = 20000 };

static _Atomic uint64_t published[MAX_HARTS];
static uint64_t max_ahead[MAX_HARTS];
static int backwards[MAX_HARTS]; /* times that a hart saw its own time go back */
static atomic_int begin, harts_done, n_harts;

static void look(long hart)
{
    uint64_t before = 0;
    while (!atomic_load(&begin));
    for (int i = 0; i < LOOKS; i++)
        for (int other = 0; other < atomic_load(&n_harts); other++) {
            uint64_t theirs = atomic_load(&published[other]), mine = read_time();
            if (mine < before) backwards[hart]++;
            before = mine;
            if (theirs > mine && theirs - mine > max_ahead[hart]) max_ahead[hart] = theirs - mine;
            atomic_store(&published[hart], mine);
        }
    atomic_fetch_add(&harts_done, 1);
}

void other_hart(long hart)
{
    report_ready();
    look(hart);
}

void first_hart(long hart)
{
    atomic_store(&n_harts, start_others(hart));
    atomic_store(&begin, 1);
    look(hart);
    while (atomic_load(&harts_done) < atomic_load(&n_harts));
    uint64_t ahead = 0, back = 0;
    for (int i = 0; i < MAX_HARTS; i++) {
        if (max_ahead[i] > ahead) ahead = max_ahead[i];
        back += (uint64_t)backwards[i];
    }
    print_number("ahead", ahead);
    print_number("backwards", back);
    shut_down();
}
