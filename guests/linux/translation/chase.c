/* A pointer chase: `chase MIB STEPS` goes from page to page of so much memory, each a page of 4 KiB, in one random cycle through all of them, so that a load can't begin before the one
 * in front of it has its page. For tlb.so: window 1 is STEPS steps, after one round through all pages, window 2. Window 3 is what comes
 * before both: the pages are touched for the first time, and get their pointers. */
#include "../micro/libc.h"

enum { WINDOW_CHASE = 1, WINDOW_ROUND = 2, WINDOW_BUILD = 3, PAGE = 4096, LINE = 64, MOST_MIB = 512 };

/* A generator of Marsaglia's (xorshift64); always the same cycle. */
static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Where a page's pointer is: on different lines, so that not all of them are in the same set of a data cache. */
static void **place(char *memory, uint32_t page)
{
	return (void **)(memory + (size_t)page * PAGE + page * 7 % (PAGE / LINE) * LINE);
}

/* One cycle through all pages (Sattolo's shuffle of `order`). */
static void **make_cycle(char *memory, uint32_t *order, uint32_t pages)
{
	for (uint32_t i = 0; i < pages; i++)
		order[i] = i;
	for (uint32_t i = pages - 1; i > 0; i--) {
		uint32_t other = (uint32_t)(random_number() % i), page = order[i];
		order[i] = order[other];
		order[other] = page;
	}
	for (uint32_t i = 0; i < pages; i++)
		*place(memory, order[i]) = place(memory, order[i + 1 < pages ? i + 1 : 0]);
	return place(memory, order[0]);
}

static void **chase(void **at, unsigned long steps)
{
	while (steps--) {
		at = *at;
		__asm__ volatile("" : "+r"(at)); /* each is a load */
	}
	return at;
}

int main(int count, char **words)
{
	if (count != 3)
		fail("the command line, chase MIB STEPS:");
	unsigned long mib = number_of(words[1]), steps = number_of(words[2]);
	if (mib > MOST_MIB)
		fail("MIB, at most 512:");
	uint32_t pages = (uint32_t)(mib << 20) / PAGE;
	char *memory = mmap(NULL, mib << 20, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
	uint32_t *order = mmap(NULL, pages * sizeof *order, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
	if ((uintptr_t)memory == UINTPTR_MAX || (uintptr_t)order == UINTPTR_MAX)
		fail("mmap()");
	if (madvise(memory, mib << 20, MADV_NOHUGEPAGE))
		fail("madvise()");
	BEGIN_WINDOW(WINDOW_BUILD);
	void **at = make_cycle(memory, order, pages);
	END_WINDOW(WINDOW_BUILD);
	BEGIN_WINDOW(WINDOW_ROUND);
	at = chase(at, pages);
	END_WINDOW(WINDOW_ROUND);
	uint64_t begin = now_ns();
	BEGIN_WINDOW(WINDOW_CHASE);
	at = chase(at, steps);
	END_WINDOW(WINDOW_CHASE);
	double step_ns = (double)(now_ns() - begin) / (double)steps;
	if (at != place(memory, (uint32_t)(((char *)at - memory) / PAGE)))
		fail("the chase's last step");
	printf("\"step_ns\":%.1f\n", step_ns);
	return 0;
}
