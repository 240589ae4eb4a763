/* A set of periodic real-time tasks, as FreeRTOS's (../../freertos/demo/task_set.c): `task-set BEGIN_MS RUN_MS UNCOUNTED TASK...`, each task
 * PERIOD_US,INSTRUCTIONS,DEADLINE_US,PRIORITY,CPU. Each is a thread of the scheduling class SCHED_FIFO that stays on its CPU, and computes so many instructions in
 * each of its periods, whatever the clock says meanwhile. All begin at once, when CLOCK_MONOTONIC is BEGIN_MS: there is no busier moment. The first UNCOUNTED jobs of each
 * are done as all others, but count nowhere (../../common/samples.h). Prints what became of the rest, as fields of a result, and behind that line the histograms of their response times. */
#define PROGRAM "task-set"
#include "threads.h"
#include "samples.h"

enum { SYS_clock_nanosleep = 115, SYS_sched_setscheduler = 119, SYS_mlockall = 230 };
enum { MCL_CURRENT_AND_FUTURE = 3, TIMER_ABSTIME = 1, SCHED_FIFO = 1 };
enum { MOST_TASKS = 8, INSTRUCTIONS_PER_ROUND = 64 };

/* Log-linear buckets: 32 to each power of two, so a response time is known to 3 %. What is above the last one's bound, 18 minutes, counts there. */
enum { SUB_BITS = 5, MOST_BITS = 40, BUCKETS = (MOST_BITS - SUB_BITS + 1) << SUB_BITS };

enum { PERIOD, INSTRUCTIONS, DEADLINE, PRIORITY, CPU, VALUES };

static struct task {
	uint64_t values[VALUES];
	struct samples samples;
	uint64_t jobs, missed;       /* of those that count, as all that follows */
	uint64_t latest_ns;          /* from a period's start to the beginning of what the job computes, the longest */
	uint64_t worst_ns, total_ns; /* to its end: the longest, and all together */
	uint64_t worst_job;          /* which one of all that was, from 0 */
	uint64_t buckets[BUCKETS];
} tasks[MOST_TASKS];
static uint64_t begin_ns, end_ns;

/* What a call returned, if it was no error. */
static uint64_t good(long result, const char *what)
{
	if (result < 0 && result > -PAGE)
		fail(what, (uint64_t)-result);
	return (uint64_t)result;
}

/* Returns at once if that time is over. */
static void sleep_until(uint64_t ns)
{
	struct timespec until = { (long)(ns / 1000000000), (long)(ns % 1000000000) };
	good(syscall6(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&until, 0, 0, 0), "no sleep: error");
}

/* The emulator is the faster the longer its loop. */
static void compute(uint64_t rounds)
{
	__asm__ volatile("1: .rept %c1 - 2; nop; .endr; addi %0, %0, -1; bnez %0, 1b" : "+r"(rounds) : "i"(INSTRUCTIONS_PER_ROUND));
}

/* A value with its highest bit at 2^(SUB_BITS + k) keeps its upper SUB_BITS + 1 bits; the lower k are dropped. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned shift = 0;
	if (ns >> MOST_BITS)
		return BUCKETS - 1;
	for (; ns >> (SUB_BITS + 1); ns >>= 1)
		shift++;
	return (shift << SUB_BITS) + (unsigned)ns;
}

/* The greatest value of a bucket. */
static uint64_t bound_of(unsigned bucket)
{
	unsigned shift = bucket < 2u << SUB_BITS ? 0 : (bucket >> SUB_BITS) - 1;
	return ((uint64_t)(bucket - (shift << SUB_BITS) + 1) << shift) - 1;
}

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

__attribute__((used)) static _Noreturn void work(uint64_t number)
{
	struct task *task = &tasks[number];
	uint64_t cpu = UINT64_C(1) << task->values[CPU];
	int priority = (int)task->values[PRIORITY];
	good(syscall6(SYS_sched_setaffinity, 0, sizeof cpu, (long)&cpu, 0, 0, 0), "no such CPU: error");
	good(syscall6(SYS_sched_setscheduler, 0, SCHED_FIFO, (long)&priority, 0, 0, 0), "no SCHED_FIFO: error");
	if (now_ns() >= begin_ns)
		fail("the set was to begin before its threads were there, which took as many ms:", now_ns() / 1000000);
	uint64_t period = task->values[PERIOD] * 1000, deadline = task->values[DEADLINE] * 1000;
	/* A job that is late doesn't wait, so no period is left out. */
	for (uint64_t release = begin_ns; release < end_ns; release += period) {
		sleep_until(release);
		uint64_t late = now_ns() - release;
		compute(task->values[INSTRUCTIONS] / INSTRUCTIONS_PER_ROUND);
		uint64_t response = now_ns() - release;
		if (!sample_counts(&task->samples))
			continue;
		task->latest_ns = greater(task->latest_ns, late);
		if (response > task->worst_ns)
			task->worst_job = task->samples.taken - 1;
		task->jobs++;
		task->missed += response > deadline;
		task->total_ns += response;
		task->worst_ns = greater(task->worst_ns, response);
		task->buckets[bucket_of(response)]++;
	}
	for (;;)
		syscall6(SYS_exit, 0, 0, 0, 0, 0, 0);
}

/* Reads so many whole numbers with commas between. */
static void read_numbers(const char *text, uint64_t *values, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const char *first = text;
		for (values[i] = 0; *text >= '0' && *text <= '9'; text++)
			values[i] = values[i] * 10 + (uint64_t)(*text - '0');
		char behind = i + 1 < count ? ',' : '\0';
		if (text == first || *text != behind)
			fail("usage: task-set BEGIN_MS RUN_MS UNCOUNTED PERIOD_US,INSTRUCTIONS,DEADLINE_US,PRIORITY,CPU...; tasks at most", MOST_TASKS);
		text += *text == ',';
	}
}

static void print_field(const char *name, uint64_t value)
{
	print(name);
	print_number(value);
}

static void print_task(const struct task *task)
{
	print_field("{\"cpu\":", task->values[CPU]);
	print_field(",\"jobs\":", task->jobs);
	print_field(",\"missed\":", task->missed);
	print_field(",\"worst_ns\":", task->worst_ns);
	print_field(",\"worst_job\":", task->worst_job);
	print_field(",\"mean_ns\":", task->jobs ? task->total_ns / task->jobs : 0);
	print_field(",\"latest_ns\":", task->latest_ns);
	print("}");
}

static void print_buckets(uint64_t number)
{
	print_field("@result {\"job\":\"task-set\",\"hist\":\"task", number + 1);
	print("_ns\",\"buckets\":[");
	const char *between = "[";
	for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
		if (tasks[number].buckets[bucket] == 0)
			continue;
		print_field(between, bound_of(bucket));
		print_field(",", tasks[number].buckets[bucket]);
		print("]");
		between = ",[";
	}
	print("]}\n");
}

__attribute__((used)) static void run(char *const *stack)
{
	enum { BEGIN = 2, RUN, UNCOUNTED, FIRST_TASK }; /* behind argc and the program's name */
	uint64_t arguments = (uint64_t)stack[0], count = arguments > 4 ? arguments - 4 : 0, begin_ms = 0, run_ms = 0, uncounted = 0;
	if (count == 0 || count > MOST_TASKS)
		read_numbers("", &begin_ms, 1);
	read_numbers(stack[BEGIN], &begin_ms, 1);
	read_numbers(stack[RUN], &run_ms, 1);
	read_numbers(stack[UNCOUNTED], &uncounted, 1);
	begin_ns = begin_ms * 1000000;
	end_ns = begin_ns + run_ms * 1000000;
	good(syscall6(SYS_mlockall, MCL_CURRENT_AND_FUTURE, 0, 0, 0, 0, 0), "memory can't be locked: error");
	for (uint64_t number = 0; number < count; number++) {
		uint64_t *values = tasks[number].values;
		read_numbers(stack[FIRST_TASK + number], values, VALUES);
		if (values[PERIOD] == 0 || values[INSTRUCTIONS] < INSTRUCTIONS_PER_ROUND || values[CPU] > 63)
			fail("a period above 0, a CPU up to 63, and so many instructions at least:", INSTRUCTIONS_PER_ROUND);
		uint64_t jobs = (run_ms * 1000 + values[PERIOD] - 1) / values[PERIOD];
		if (!samples_leave_some(uncounted, jobs))
			fail("no job of a task would count, as it has no more than", jobs);
		tasks[number].samples.uncounted = uncounted;
	}
	for (uint64_t number = 0; number < count; number++) {
		char *memory = (char *)good(syscall6(SYS_mmap, 0, STACK, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0), "no memory: error");
		good(start(number, memory + STACK), "no thread: error");
	}
	for (uint64_t number = 0; number < count; number++) {
		int status = 0;
		good(syscall6(SYS_wait4, -1, (long)&status, 0, 0, 0, 0), "no thread to wait for: error");
		if (status)
			fail("a thread ended with", (uint64_t)status);
	}
	uint64_t missed = 0;
	print("\"tasks\":[");
	for (uint64_t number = 0; number < count; number++) {
		if (number)
			print(",");
		print_task(&tasks[number]);
		missed += tasks[number].missed;
	}
	print_field("],\"missed\":", missed);
	print("\n");
	for (uint64_t number = 0; number < count; number++)
		print_buckets(number);
	for (;;)
		syscall6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* The kernel leaves argc and argv on the stack. Threads have the same gp, through which the linker has variables reached. */
__asm__(".globl _start\n_start:\n"
	"\t.option push\n\t.option norelax\n\tla gp, __global_pointer$\n\t.option pop\n"
	"\tmv a0, sp\n\tcall run\n");
