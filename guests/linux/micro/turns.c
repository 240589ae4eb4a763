/* Three processes in turn (Ito and Oikawa 2008, figure 12): `turns SETS REGIONS`. Process A touches REGIONS regions of 2 MiB in each of its turns, B and C one, a single page of each,
 * so that each region takes a page table of its own, whoever makes one. The turns are ABC ABC ..., in one window, then ABAC ABAC ... in another; prints how long one set of turns takes. */
#include "libc.h"

enum { WINDOW_ABC = 1, WINDOW_ABAC = 2, UNCOUNTED = 5, PROCESSES = 3, REGION = 2 << 20 };

/* Whose turn it is in a set, and how many turns are left of all. */
struct turn {
	uint32_t number, left;
};

static const char *const orders[] = { [WINDOW_ABC] = "ABC", [WINDOW_ABAC] = "ABAC" };
/* A pipe to each process, and one to the parent. */
static int pipes[PROCESSES + 1][2];

static void send(int process, struct turn turn)
{
	if (write(pipes[process][1], &turn, sizeof turn) != sizeof turn)
		fail("a pipe's end");
}

static struct turn receive(int process)
{
	struct turn turn;
	if (read(pipes[process][0], &turn, sizeof turn) != sizeof turn)
		fail("a pipe's begin");
	return turn;
}

/* Regions on boundaries of their size. A huge page would need no table. */
static volatile char *map_regions(unsigned long regions)
{
	uintptr_t at = (uintptr_t)mmap(NULL, (regions + 1) * REGION, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
	if (at == UINTPTR_MAX)
		fail("mmap()");
	at = (at + REGION - 1) / REGION * REGION;
	if (madvise((void *)at, regions * REGION, MADV_NOHUGEPAGE))
		fail("madvise()");
	return (volatile char *)at;
}

static _Noreturn void take_turns(int process, const char *order, unsigned long regions)
{
	volatile char *memory = map_regions(regions);
	for (;;) {
		struct turn turn = receive(process);
		if (!turn.left)
			_exit(0);
		for (unsigned long i = 0; i < regions; i++)
			memory[i * REGION]++;
		turn.left--;
		turn.number = order[turn.number + 1] ? turn.number + 1 : 0;
		send(turn.left ? order[turn.number] - 'A' : PROCESSES, turn);
	}
}

static void do_sets(const char *order, unsigned long sets)
{
	send(0, (struct turn){ .number = 0, .left = (uint32_t)(sets * strlen(order)) });
	receive(PROCESSES);
}

/* One order, from its processes' begin to their end. */
#define MEASURE(window, sets, regions)                                                                   \
	({                                                                                               \
		const char *order = orders[window];                                                      \
		pid_t children[PROCESSES];                                                               \
		for (int process = 0; process < PROCESSES; process++) {                                  \
			children[process] = fork();                                                      \
			if (!children[process])                                                          \
				take_turns(process, order, process ? 1 : regions);                       \
		}                                                                                        \
		do_sets(order, UNCOUNTED);                                                               \
		uint64_t begin = now_ns();                                                               \
		BEGIN_WINDOW(window);                                                                    \
		do_sets(order, sets);                                                                    \
		END_WINDOW(window);                                                                      \
		double set_ns = (double)(now_ns() - begin) / (double)(sets);                             \
		for (int process = 0; process < PROCESSES; process++) {                                  \
			send(process, (struct turn){ .left = 0 });                                       \
			wait_for(children[process]);                                                     \
		}                                                                                        \
		set_ns;                                                                                  \
	})

int main(int count, char **words)
{
	if (count != 3)
		fail("the command line, turns SETS REGIONS:");
	unsigned long sets = number_of(words[1]), regions = number_of(words[2]);
	for (int i = 0; i <= PROCESSES; i++)
		if (pipe(pipes[i]))
			fail("pipe()");
	double abc_ns = MEASURE(WINDOW_ABC, sets, regions);
	double abac_ns = MEASURE(WINDOW_ABAC, sets, regions);
	printf("\"abc_ns\":%.1f,\"abac_ns\":%.1f\n", abc_ns, abac_ns);
	return 0;
}
