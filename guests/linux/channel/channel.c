/* Sends numbers through a channel, and waits until they are back: `channel UIO DEVICE ROUNDS BURST`, as `channel /dev/uio0 /sys/bus/pci/devices/0000:00:00.0 1000 1`.
 * In each round it puts BURST numbers into the queue (../../common/channel_queue.h), rings, and sleeps until all have come back. Prints how many were sent and came
 * back, how many of those weren't the next, how many were lost (nothing came for a second), and how long rounds took: a histogram, in a line of its own.
 *
 * How a program uses a channel by `uio_pci_generic` (Linux, Documentation/driver-api/uio-howto.rst): resource0 of the device are the registers, resource2 is the memory;
 * a read of the UIO device returns when the bell has rung, and the kernel has switched the interrupt off then: it is on again when bit 10 of the PCI command register,
 * the half word at 4 of `config`, is cleared. */
#define PROGRAM "channel"
#include "bare.h"
#include "channel_queue.h"

enum { SYS_openat = 56, SYS_read = 63, SYS_pread64 = 67, SYS_pwrite64 = 68, SYS_ppoll = 73, SYS_mmap = 222 };
enum { AT_FDCWD = -100, O_RDWR = 2, O_SYNC = 04010000, PROT_READ_WRITE = 3, MAP_SHARED = 1, POLLIN = 1 };
/* Words of the device's registers. */
enum { MASK, STATUS, POSITION, DOORBELL };
enum { PCI_COMMAND = 4, INTX_DISABLE = 1 << 10 };
/* Of the times of rounds: 1/8 of an octave each, from 1 ns on. */
enum { PARTS = 8, BUCKETS = 40 * PARTS };

struct pollfd {
	int fd;
	short events, revents;
};

static uint64_t buckets[BUCKETS];

static long open_at(const char *folder, const char *name)
{
	char path[256];
	size_t at = 0;
	for (const char *part = folder; *part && at < sizeof path - 1; part++)
		path[at++] = *part;
	for (const char *part = name; *part && at < sizeof path - 1; part++)
		path[at++] = *part;
	path[at] = 0;
	long fd = syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_SYNC, 0, 0, 0);
	if (fd < 0)
		fail(path, (uint64_t)-fd);
	return fd;
}

static volatile void *map(long fd, size_t bytes)
{
	long at = syscall6(SYS_mmap, 0, (long)bytes, PROT_READ_WRITE, MAP_SHARED, fd, 0);
	if (at < 0 && at > -4096)
		fail("can't map the device: error", (uint64_t)-at);
	return (volatile void *)at;
}

static void note(uint64_t ns)
{
	unsigned octave = 3;
	while ((ns | PARTS) >> octave > 1)
		octave++;
	uint64_t part = (ns | PARTS) >> (octave - 3) & (PARTS - 1);
	uint64_t bucket = octave * PARTS + part;
	buckets[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

/* The last nanosecond of a bucket. */
static uint64_t bucket_end(uint64_t bucket)
{
	uint64_t octave = bucket / PARTS, part = bucket % PARTS;
	return (PARTS + part + 1) << octave >> 3;
}

static void field(const char *name, uint64_t value)
{
	print(name);
	print_number(value);
}

static void print_histogram(void)
{
	print("@result {\"job\":\"channel\",\"hist\":\"round_ns\",\"buckets\":[");
	const char *between = "[";
	for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
		if (!buckets[bucket])
			continue;
		field(between, bucket_end(bucket));
		field(",", buckets[bucket]);
		between = "],[";
	}
	print("]]}\n");
}

__attribute__((used)) static void run(const long *stack)
{
	uint64_t rounds = 0, burst = 0;
	if (stack[0] == 5) {
		rounds = number_of((const char *)stack[4]);
		burst = number_of((const char *)stack[5]);
	}
	if (!rounds || !burst || burst > CHANNEL_QUEUE_LENGTH)
		fail("usage: channel UIO DEVICE ROUNDS BURST, in a burst at most", CHANNEL_QUEUE_LENGTH);
	const char *device = (const char *)stack[3];
	long uio = open_at((const char *)stack[2], ""), config = open_at(device, "/config");
	volatile uint32_t *registers = map(open_at(device, "/resource0"), 4096);
	volatile void *memory = map(open_at(device, "/resource2"), 4096);
	struct channel_queue *out = channel_queue_of(memory, registers[POSITION]);
	struct channel_queue *in = channel_queue_of(memory, registers[POSITION] ^ 1);
	uint16_t command = 0;
	syscall6(SYS_pread64, config, (long)&command, sizeof command, PCI_COMMAND, 0, 0);
	command &= (uint16_t)~INTX_DISABLE;
	registers[MASK] = 1;

	uint64_t sent = 0, back = 0, wrong = 0, lost = 0, bells = 0, least = UINT64_MAX, most = 0, sum = 0;
	for (uint64_t round = 0; round < rounds && !lost; round++) {
		uint64_t begin = now_ns();
		for (uint64_t i = 0; i < burst && channel_put(out, sent + 1); i++)
			sent++;
		__asm__ volatile("fence w, o" ::: "memory");
		registers[DOORBELL] = (registers[POSITION] ^ 1) << 16;
		while (back < sent && !lost) {
			uint64_t item;
			while (channel_take(in, &item))
				wrong += item != ++back;
			if (back == sent)
				break;
			struct timespec patience = { 1, 0 };
			struct pollfd bell = { (int)uio, POLLIN, 0 };
			if (syscall6(SYS_ppoll, (long)&bell, 1, (long)&patience, 0, 0, 0) != 1) {
				lost = sent - back;
				break;
			}
			uint32_t count;
			syscall6(SYS_read, uio, (long)&count, sizeof count, 0, 0, 0);
			bells += registers[STATUS];
			__asm__ volatile("fence i, r" ::: "memory");
			syscall6(SYS_pwrite64, config, (long)&command, sizeof command, PCI_COMMAND, 0, 0);
		}
		uint64_t took = now_ns() - begin;
		note(took);
		sum += took;
		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	field("\"rounds\":", rounds);
	field(",\"sent\":", sent);
	field(",\"back\":", back);
	field(",\"wrong\":", wrong);
	field(",\"lost\":", lost);
	field(",\"bells\":", bells);
	field(",\"round_ns\":{\"min\":", least);
	field(",\"mean\":", sum / rounds);
	field(",\"max\":", most);
	print("}\n");
	print_histogram();
	for (;;)
		syscall6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* The kernel leaves argc and argv on the stack. */
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tcall run\n");
