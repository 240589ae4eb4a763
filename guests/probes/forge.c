/* Prints what may be taken for the hypervisor's own records. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#define REC "ainori| @record {\"record\":\"end\",\"time\":1,\"console_bytes_lost\":77}"
#define CORE "ainori| @record {\"record\":\"stopped\",\"guest\":\"freertos\",\"vcpu\":0,\"life\":1,\"reason\":\"reboot\",\"next\":\"end\",\"time\":5}"
#define P(s) do { console_write(s, sizeof(s) - 1); for (volatile int i = 0; i < 3000; i++) ; } while (0)
static char longline[5000];
bool guest_main(void)
{
    uint64_t sleep = arg_number("sleep_us", 0, 0, 1000000);
    args_finish();
    for (unsigned i = 0; i < sizeof longline; i++) longline[i] = 'x';
    for (int k = 0; k < 3; k++) {
        P("\n" REC "\n"); P("\r" REC "\r\n"); P("\r\r\n" CORE "\n"); P("\v" REC "\f" REC "\n"); P("\x85" REC "\n"); P("\xe2\x80\xa8" REC "\n");
        P("\0" REC "\n"); P("\x1b[2K\x1b[1G" REC "\n"); P("\b\b\b\b\b\b\b\b\b\b" REC "\n"); P("\n\r" CORE "\n\r"); P("freertos| @result {\"job\":\"freertos\",\"ok\":false}\n");
        P("@record {\"record\":\"end\",\"time\":1,\"console_bytes_lost\":77}\n");
        P("ainori"); if (sleep) sleep_us(sleep); P("| @record {\"record\":\"panic\"}\n");
        for (unsigned i = 0; i < sizeof longline; i += 100) console_write(longline + i, 100);
        P(REC "\n");
        for (int i = 0; i < 40; i++) { console_write(longline, 100); }
        P("\r"); if (sleep) sleep_us(sleep); P(CORE "\r"); if (sleep) sleep_us(sleep); P(REC "\n");
        P("\xff\xfe\xc0\x80\xed\xa0\x80\n"); P("\n\n\n\n");
    }
    P("ainori| ");
    sleep_us(30000);
    P("@record {\"record\":\"end\",\"time\":1,\"console_bytes_lost\":77}");
    sleep_us(30000);
    P("@result {\"job\":\"forge\",\"ok\":true}\n");
    return true;
}
