/* Gives the core to the other guests whenever it runs: `give-way REG [nice N | idle | fifo N]`, where REG is the file `reg` of the node `give-way` in the device tree, as
 * /sys/firmware/devicetree/base/soc/give-way@4000000/reg. How often it runs is a matter of its nice value or its scheduling class, like any other process's. (It sets them
 * as `nice` and `chrt` would, which this initramfs hasn't got.)
 *
 * How a program gives way: it maps the page where `reg` says, from /dev/mem, and loads the page's first word. The load ends with the next interrupt for the CPU
 * (../../../docs/guests.md). Then Linux decides, as after any interrupt, who goes on. It needs CAP_SYS_RAWIO until the page is mapped, and nothing afterwards. */
#define PROGRAM "give-way"
#include "bare.h"

enum { SYS_openat = 56, SYS_close = 57, SYS_read = 63, SYS_sched_setscheduler = 119, SYS_setpriority = 140, SYS_mmap = 222 };
enum { PRIO_PROCESS = 0, SCHED_FIFO = 1, SCHED_IDLE = 5 };
enum { AT_FDCWD = -100, O_RDONLY = 0, O_SYNC = 04010000, PROT_READ = 1, MAP_SHARED = 1, PAGE = 4096 };

/* The page's address: the first doubleword of the property, big-endian. */
static uint64_t address_in(const char *file)
{
	uint8_t bytes[8];
	long fd = syscall6(SYS_openat, AT_FDCWD, (long)file, O_RDONLY, 0, 0, 0);
	if (fd < 0)
		fail("there is no such file (is this a guest of Ainori?): error", (uint64_t)-fd);
	long size = syscall6(SYS_read, fd, (long)bytes, sizeof bytes, 0, 0, 0);
	if (size != sizeof bytes)
		fail("no address of 8 bytes is in that file:", (uint64_t)size);
	syscall6(SYS_close, fd, 0, 0, 0, 0, 0);
	uint64_t address = 0;
	for (size_t i = 0; i < sizeof bytes; i++)
		address = address << 8 | bytes[i];
	return address;
}

static long signed_number_of(const char *text)
{
	return *text == '-' ? -(long)number_of(text + 1) : (long)number_of(text);
}

static void set_priority(const char *class, const char *number)
{
	/* By its first letter: n, i or f. */
	int priority = *class == 'f' ? (int)signed_number_of(number) : 0;
	long error = *class == 'n' ? syscall6(SYS_setpriority, PRIO_PROCESS, 0, signed_number_of(number), 0, 0, 0)
		: syscall6(SYS_sched_setscheduler, 0, *class == 'f' ? SCHED_FIFO : SCHED_IDLE, (long)&priority, 0, 0, 0);
	if (error)
		fail("this priority is refused: error", (uint64_t)-error);
}

__attribute__((used)) static void run(const long *stack)
{
	const char *const *arguments = (const char *const *)&stack[1];
	if (stack[0] < 2)
		fail("usage: give-way REG [nice N | idle | fifo N], REG as /sys/firmware/devicetree/base/soc/give-way@4000000/reg; words given:", (uint64_t)stack[0] - 1);
	uint64_t address = address_in(arguments[1]);
	long memory = syscall6(SYS_openat, AT_FDCWD, (long)"/dev/mem", O_RDONLY | O_SYNC, 0, 0, 0);
	if (memory < 0)
		fail("can't open /dev/mem: error", (uint64_t)-memory);
	long page = syscall6(SYS_mmap, 0, PAGE, PROT_READ, MAP_SHARED, memory, (long)address);
	if (page < 0 && page > -PAGE)
		fail("can't map the page: error", (uint64_t)-page);
	if (stack[0] > 2)
		set_priority(arguments[2], stack[0] > 3 ? arguments[3] : "");
	for (;;)
		(void)*(const volatile uint32_t *)page;
}

/* The kernel leaves argc and argv on the stack. */
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tcall run\n");
