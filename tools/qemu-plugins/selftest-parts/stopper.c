/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a program, and stops and continues it at random moments until it ends, as a host does that has other things to
   do: `stopper PROGRAM ARGUMENT...`. Its threads come back in any order, each at a time of its own. Ends as the program
   did; a signal that should end it goes on to the program. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUN_US = 8000, MAX_STOP_US = 3000 };

static pid_t program;

static void pass_on(int sig) { kill(program, sig); }

static unsigned us_below(unsigned limit)
{
    static unsigned seed;
    if (!seed) seed = (unsigned)getpid() | 1;
    return 1 + (unsigned)rand_r(&seed) % limit;
}

static void wait_us(unsigned us) { nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL); }

int main(int argc, char **argv)
{
    sigset_t ends;
    sigemptyset(&ends), sigaddset(&ends, SIGTERM), sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* until there is somebody to pass them on to */
    program = argc > 1 ? fork() : -1;
    if (program < 0) return fprintf(stderr, "usage: stopper PROGRAM ARGUMENT...\n"), 125;
    if (program == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_UNBLOCK, &ends, NULL);
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    signal(SIGTERM, pass_on), signal(SIGINT, pass_on);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);
    int status;
    while (waitpid(program, &status, WNOHANG) == 0) {
        wait_us(us_below(MAX_RUN_US));
        kill(program, SIGSTOP);
        wait_us(us_below(MAX_STOP_US));
        kill(program, SIGCONT);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
