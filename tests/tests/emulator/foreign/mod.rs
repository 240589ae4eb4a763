//! Guests that nobody here wrote, in shapes that they meet elsewhere. What works on QEMU's `virt` under OpenSBI is to work here.
//!
//! Those that take minutes, or need guests that only `guests/linux/build userland sid` makes, are left out of `make test`:
//! `cargo test --package ainori-tests --test emulator foreign -- --ignored` runs them.
mod hotplug;
mod shapes;
mod sid;
mod suspend;
mod text;
mod u_boot;
mod userland;

use ainori_tests::{Guest, Run};

/// FreeRTOS on hart 1 with a tick each millisecond, of which `periods` are measured, after `begin_ms` in which the others boot.
fn freertos(begin_ms: u64, periods: u64) -> Guest {
    Guest::freertos(&format!(
        "period_us=1000 periods={periods} begin_ms={begin_ms} burn_percent=30 burn_period_us=20000 report_ms=0"
    ))
    .harts([1])
}

/// FreeRTOS lost nothing, and was never later than it may be.
#[track_caller]
fn is_in_time(run: &Run, periods: u64) {
    run.lost_no_tick("freertos", periods);
    run.was_in_time("freertos", format_args!("after {:.1} s", run.report.host.seconds));
}
