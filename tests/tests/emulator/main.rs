//! Real guests on the real hypervisor, in the emulator. One program, so that its tests can run beside each other: most of
//! them keep one core of the host busy.
mod apart;
mod aplic;
mod balance;
mod boards;
mod boot;
mod budgets;
mod co_schedule;
mod console;
mod faults;
mod foreign;
mod grace;
mod hostile;
mod kernel_image;
mod large;
mod latency;
mod migration;
mod platform;
mod random;
mod ranking;
mod restart;
mod sharing;
mod smp_rtos;
mod spinning;
mod stress;
mod task_sets;
mod verify;
