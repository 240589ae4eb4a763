/* Sends numbers through a channel, and waits until they are back: `channel UIO DEVICE ROUNDS BURST POLLS UNCOUNTED`, as `channel /dev/uio0 /sys/bus/pci/devices/0000:00:00.0 1000 1 0 1`.
 * In each round it puts BURST numbers into the queue (../../common/channel_queue.h), rings, and sleeps until all have come back; if POLLS isn't 0 it doesn't ring, and looks at the queue
 * until they have. Prints how many were sent and came back, how many of those weren't the next, how many were lost (nothing came for a second), and how long rounds took: a histogram, in a line of its own.
 * For how long the other end says that it has kept a number on purpose is no part of that, and the first UNCOUNTED rounds aren't among them.
 *
 * How a program uses a channel by `uio_pci_generic` (Linux, Documentation/driver-api/uio-howto.rst): resource0 of the device are the registers, resource2 is the memory, resource4, if it is there, the page by which
 * the other end is rung for without a trap;
 * a read of the UIO device returns when the bell has rung, and the kernel has switched the interrupt off then: it is on again when bit 10 of the PCI command register,
 * the half word at 4 of `config`, is cleared. */
#define PROGRAM "channel"
#include "bare.h"
#include "channel_pause.h"
#include "channel_queue.h"
#include "samples.h"

enum { SYS_openat = 56, SYS_read = 63, SYS_pread64 = 67, SYS_pwrite64 = 68, SYS_ppoll = 73, SYS_mmap = 222 };
enum { AT_FDCWD = -100, O_RDWR = 2, O_SYNC = 04010000, PROT_READ_WRITE = 3, MAP_SHARED = 1, POLLIN = 1 };
/* Words of the device's registers. */
enum { MASK, STATUS, POSITION, DOORBELL };
/* What rings, stored to the page of a bell. */
enum { BELL = 1 };
enum { PCI_COMMAND = 4, INTX_DISABLE = 1 << 10 };
/* Of the times of rounds: 1/32 of an octave each. */
enum { PART_BITS = 5, PARTS = 1 << PART_BITS, BUCKETS = 40 * PARTS };
enum { PAIRS_PER_LINE = 40 };
#define PATIENCE_NS (CHANNEL_PATIENCE_US * 1000ul)

struct pollfd {
	int fd;
	short events, revents;
};

static uint64_t buckets[BUCKETS];

/* An error below 0. */
static long try_to_open(const char *folder, const char *name)
{
	char path[256];
	size_t at = 0;
	for (const char *part = folder; *part && at < sizeof path - 1; part++)
		path[at++] = *part;
	for (const char *part = name; *part && at < sizeof path - 1; part++)
		path[at++] = *part;
	path[at] = 0;
	return syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_SYNC, 0, 0, 0);
}

static long open_at(const char *folder, const char *name)
{
	long fd = try_to_open(folder, name);
	if (fd < 0)
		fail(*name ? name : folder, (uint64_t)-fd);
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
	unsigned octave = PART_BITS;
	while ((ns | PARTS) >> octave > 1)
		octave++;
	uint64_t part = (ns | PARTS) >> (octave - PART_BITS) & (PARTS - 1);
	uint64_t bucket = octave * PARTS + part;
	buckets[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

/* The last nanosecond of a bucket. */
static uint64_t bucket_end(uint64_t bucket)
{
	uint64_t octave = bucket / PARTS, part = bucket % PARTS;
	return (PARTS + part + 1) << octave >> PART_BITS;
}

/* So many thousandths of all rounds took no longer. 0 if there were none. */
static uint64_t quantile(uint64_t rounds, uint64_t per_mille)
{
	if (!rounds)
		return 0;
	uint64_t wanted = (rounds * per_mille + 999) / 1000, seen = 0, bucket = 0;
	while (bucket < BUCKETS - 1 && (seen += buckets[bucket]) < wanted)
		bucket++;
	return bucket_end(bucket);
}

static void field(const char *name, uint64_t value)
{
	print(name);
	print_number(value);
}

static void print_histogram(void)
{
	unsigned on_line = 0;
	for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
		if (!buckets[bucket])
			continue;
		if (on_line == 0)
			print("@result {\"job\":\"channel\",\"hist\":\"round_ns\",\"buckets\":[");
		field(on_line ? ",[" : "[", bucket_end(bucket));
		field(",", buckets[bucket]);
		print("]");
		if (++on_line == PAIRS_PER_LINE) {
			print("]}\n");
			on_line = 0;
		}
	}
	if (on_line)
		print("]}\n");
}

__attribute__((used)) static void run(const long *stack)
{
	uint64_t rounds = 0, burst = 0, polls = 0;
	struct samples samples = { 0 };
	if (stack[0] == 7) {
		rounds = number_of((const char *)stack[4]);
		burst = number_of((const char *)stack[5]);
		polls = number_of((const char *)stack[6]);
		samples.uncounted = number_of((const char *)stack[7]);
	}
	if (!rounds || !burst || burst > CHANNEL_QUEUE_LENGTH)
		fail("usage: channel UIO DEVICE ROUNDS BURST POLLS UNCOUNTED, in a burst at most", CHANNEL_QUEUE_LENGTH);
	if (!samples_leave_some(samples.uncounted, rounds))
		fail("no round would count, as there are no more than", rounds);
	const char *device = (const char *)stack[3];
	long uio = open_at((const char *)stack[2], ""), config = open_at(device, "/config");
	volatile uint32_t *registers = map(open_at(device, "/resource0"), 4096);
	volatile void *memory = map(open_at(device, "/resource2"), 4096);
	/* Only where the hypervisor has a page for this bell: elsewhere the register rings. */
	long page = try_to_open(device, "/resource4");
	volatile uint32_t *bell = page < 0 ? NULL : map(page, 4096);
	uint32_t position = registers[POSITION];
	struct channel_queue *out = channel_queue_of(memory, position);
	struct channel_queue *in = channel_queue_of(memory, position ^ 1);
	uint16_t command = 0;
	syscall6(SYS_pread64, config, (long)&command, sizeof command, PCI_COMMAND, 0, 0);
	command &= (uint16_t)~INTX_DISABLE;
	registers[MASK] = 1;

	uint64_t sent = 0, back = 0, wrong = 0, lost = 0, bells = 0, least = UINT64_MAX, most = 0, sum = 0, counted = 0;
	for (uint64_t round = 0; round < rounds && !lost; round++) {
		uint64_t begin = now_ns(), kept = in->kept_ns;
		for (uint64_t i = 0; i < burst && channel_put(out, sent + 1); i++)
			sent++;
		if (!polls) {
			__asm__ volatile("fence w, o" ::: "memory");
			if (bell)
				*bell = BELL;
			else
				registers[DOORBELL] = (position ^ 1) << 16;
		}
		while (back < sent && !lost) {
			uint64_t item;
			while (channel_take(in, &item))
				wrong += item != ++back;
			if (back == sent)
				break;
			if (polls) {
				lost = now_ns() - begin > PATIENCE_NS ? sent - back : 0;
				continue;
			}
			struct timespec patience = { PATIENCE_NS / 1000000000, PATIENCE_NS % 1000000000 };
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
		kept = in->kept_ns - kept;
		if (kept > took)
			fail("the other end says that it kept a number for longer than its round took, in ns:", kept - took);
		took -= kept;
		if (!sample_counts(&samples))
			continue;
		counted++;
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
	field(",\"counted\":", counted);
	field(",\"round_ns\":{\"min\":", counted ? least : 0);
	/* Of those that there were: after one that is lost there are no more. */
	field(",\"mean\":", counted ? sum / counted : 0);
	field(",\"p50\":", quantile(counted, 500));
	field(",\"p99\":", quantile(counted, 990));
	field(",\"p999\":", quantile(counted, 999));
	field(",\"max\":", most);
	print("}\n");
	print_histogram();
	for (;;)
		syscall6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* The kernel leaves argc and argv on the stack. */
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tcall run\n");
