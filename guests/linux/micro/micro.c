/* What lmbench measures of processes, written anew: `micro GETPID PIPE FORK EXEC NOTHING` does each of these so many times, and prints how long one takes.
 *
 *   getpid  a system call that does nothing
 *   pipe    one byte to another process and one back, each through a pipe of its own (lat_pipe)
 *   here    the same where both have to run on the first CPU, so that each byte is a change of address spaces; on CPUs of their own it is a change of none, and an IPI
 *   fork    a child that ends at once, and waiting for it (lat_proc fork)
 *   exec    the same, of a child that executes NOTHING, a program that ends at once (lat_proc exec)
 *
 * Each is a window of its own for windows.so, and is done a few times before that, so that nothing in it happens for the first time. */
#include "libc.h"

enum { WINDOW_GETPID = 1, WINDOW_PIPE = 2, WINDOW_FORK = 3, WINDOW_EXEC = 4, WINDOW_HERE = 5, UNCOUNTED = 10 };

static int to_child[2], to_parent[2];
static char *nothing[] = { NULL, NULL };

static void call(void)
{
	getpid();
}

static void round_trip(void)
{
	char byte = 0;
	if (write(to_child[1], &byte, 1) != 1 || read(to_parent[0], &byte, 1) != 1)
		fail("a pipe");
}

static void send_back(unsigned long rounds)
{
	char byte;
	while (rounds--)
		if (read(to_child[0], &byte, 1) != 1 || write(to_parent[1], &byte, 1) != 1)
			_exit(1);
	_exit(0);
}

/* Where the scheduler may have this process, and its children from then on: a set of CPUs. */
static void stay_on(unsigned long cpus)
{
	if (sched_setaffinity(0, sizeof cpus, &cpus))
		fail("sched_setaffinity()");
}

static void fork_and_exit(void)
{
	pid_t child = fork();
	if (!child)
		exit(0);
	wait_for(child);
}

static void fork_and_execute(void)
{
	pid_t child = fork();
	if (!child) {
		execv(nothing[0], nothing);
		_exit(1);
	}
	wait_for(child);
}

/* Does `once` so many times in a window, and UNCOUNTED times before. Gives how long one takes, in ns. The window's number is part of an instruction. */
#define MEASURE(window, rounds, once)                                                                    \
	({                                                                                               \
		for (unsigned long i = 0; i < UNCOUNTED; i++)                                            \
			once();                                                                          \
		uint64_t begin = now_ns();                                                               \
		BEGIN_WINDOW(window);                                                                    \
		for (unsigned long i = 0; i < (rounds); i++)                                             \
			once();                                                                          \
		END_WINDOW(window);                                                                      \
		(double)(now_ns() - begin) / (double)(rounds);                                           \
	})

int main(int count, char **words)
{
	if (count != 6)
		fail("the command line, micro GETPID PIPE FORK EXEC NOTHING:");
	unsigned long getpids = number_of(words[1]), pipes = number_of(words[2]), forks = number_of(words[3]), execs = number_of(words[4]);
	nothing[0] = words[5];
	if (pipe(to_child) || pipe(to_parent))
		fail("pipe()");

	double getpid_ns = MEASURE(WINDOW_GETPID, getpids, call);
	pid_t child = fork();
	if (!child)
		send_back(pipes + UNCOUNTED);
	double pipe_ns = MEASURE(WINDOW_PIPE, pipes, round_trip);
	wait_for(child);
	stay_on(1);
	child = fork();
	if (!child)
		send_back(pipes + UNCOUNTED);
	double here_ns = MEASURE(WINDOW_HERE, pipes, round_trip);
	wait_for(child);
	stay_on(~0ul);
	double fork_ns = MEASURE(WINDOW_FORK, forks, fork_and_exit);
	double exec_ns = MEASURE(WINDOW_EXEC, execs, fork_and_execute);
	/* Not before, as each child's end would print what stands in the buffer once more. */
	printf("\"getpid_ns\":%.1f,\"pipe_ns\":%.1f,\"here_ns\":%.1f,\"fork_ns\":%.1f,\"exec_ns\":%.1f\n", getpid_ns, pipe_ns, here_ns, fork_ns, exec_ns);
	return 0;
}
