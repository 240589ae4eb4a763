/* What does a machine let programs in S- and U-mode see? This makes random programs, runs them, and tells what they have seen as numbers,
 * which are the same on each machine that is what it should be. */
#include "args.h"
#include "console.h"
#include "record.h"
#include "run.h"
#include "start.h"
#include "xorshift.h"

bool guest_main(void)
{
    uint64_t seed = arg_number("seed", 1, 0, UINT64_MAX), first = arg_number("first", 0, 0, UINT32_MAX);
    uint64_t count = arg_number("n", 100, 1, UINT32_MAX);
    uint64_t aloud = arg_number("aloud", UINT64_MAX, 0, UINT64_MAX);
    args_finish();
    uint64_t traps = 0, all = 0;
    for (uint64_t program = first; program < first + count; program++) {
        uint64_t random = (seed * 0x9e3779b97f4a7c15ul) ^ (program + 1) * 0xd1342543de82ef95ul;
        xorshift(&random);
        record_begin(program, program == aloud);
        traps += run_program(random);
        all = (all ^ record_sum()) * 0x9e3779b97f4a7c15ul;
        print("@sum %lu %lx\n", program, record_sum());
    }
    print("@result {\"job\":\"differ\",\"seed\":%lu,\"first\":%lu,\"programs\":%lu,\"traps\":%lu,\"sum\":\"%lx\",\"ok\":true}\n", seed, first, count,
          traps, all);
    return true;
}
