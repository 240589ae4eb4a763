/* Fills memory and reads it again: `fill MEBIBYTES`. Every word holds its own address, so that two pages which turn out to be one
 * are seen. Prints how many pages of the kernel's, from /proc/self/pagemap, have a physical address of 4 GiB or more. */
#include "bare.h"

enum { SYS_openat = 56, SYS_pread64 = 67, SYS_exit = 93, SYS_mmap = 222 };
enum { AT_FDCWD = -100, PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS = 0x22 };
enum { PAGE = 4096, WORDS = PAGE / sizeof(uint64_t), ENTRIES = 512 };

static _Noreturn void end(int status)
{
	for (;;)
		syscall6(SYS_exit, status, 0, 0, 0, 0, 0);
}

static _Noreturn void fail(const char *why, uint64_t value)
{
	print("fill: ");
	print(why);
	print(" ");
	print_number(value);
	print("\n");
	end(1);
}

/* Pages whose physical address is 4 GiB or more: bits 0 to 54 of a pagemap entry are the frame's number (0 without the right to know). */
static uint64_t count_high_pages(const uint64_t *start, size_t pages)
{
	static uint64_t entries[ENTRIES];
	uint64_t high = 0;
	long map = syscall6(SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap", 0, 0, 0, 0);
	if (map < 0)
		fail("no pagemap: error", (uint64_t)-map);
	for (size_t page = 0; page < pages; page += ENTRIES) {
		uint64_t first = (uint64_t)start / PAGE + page;
		long got = syscall6(SYS_pread64, map, (long)entries, sizeof entries, (long)(first * 8), 0, 0);
		if (got <= 0)
			fail("pagemap ends at page", page);
		for (size_t i = 0; i < (size_t)got / 8 && page + i < pages; i++) {
			uint64_t frame = entries[i] & ((UINT64_C(1) << 55) - 1);
			if (!(entries[i] >> 63) || !frame)
				fail("pagemap says nothing of page", page + i);
			high += frame >= (UINT64_C(1) << 32) / PAGE;
		}
	}
	return high;
}

__attribute__((used)) static void run(const long *stack)
{
	const char *argument = stack[0] == 2 ? (const char *)stack[2] : "";
	size_t mebibytes = 0;
	for (; *argument >= '0' && *argument <= '9'; argument++)
		mebibytes = mebibytes * 10 + (size_t)(*argument - '0');
	if (*argument || !mebibytes || mebibytes > (1 << 20))
		fail("usage: fill MEBIBYTES, at most", 1 << 20);

	size_t words = (mebibytes << 20) / sizeof(uint64_t);
	long at = syscall6(SYS_mmap, 0, (long)(words * sizeof(uint64_t)), PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
	if (at < 0 && at > -PAGE)
		fail("no memory: error", (uint64_t)-at);
	volatile uint64_t *memory = (volatile uint64_t *)at;
	for (size_t i = 0; i < words; i++)
		memory[i] = (uint64_t)&memory[i];
	for (size_t i = 0; i < words; i++)
		if (memory[i] != (uint64_t)&memory[i])
			fail("a word is wrong, in page", i / WORDS);
	print("\"filled_mib\":");
	print_number(mebibytes);
	print(",\"above_4_gib_mib\":");
	print_number(count_high_pages((const uint64_t *)at, words / WORDS) * PAGE >> 20);
	print("\n");
	end(0);
}

/* The kernel leaves argc and argv on the stack. */
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tcall run\n");
