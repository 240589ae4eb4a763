//! The command-line tool as a library: what `ainori check`, `build` and `run` do, for tests and benchmarks as well.
//!
//! | module | subject |
//! |---|---|
//! | [`apart`] | what a command reads and what it writes: different files |
//! | [`bench`](mod@bench) | experiments: runs to figures, with their error bars |
//! | [`check`] | a manifest, checked, as a table or as JSON |
//! | [`deadlines`] | whether the tasks that a manifest declares keep their deadlines |
//! | [`gantt`] | a picture of that |
//! | [`image`] | one bootable image of hypervisor, system and guests |
//! | [`output`] | files that are written at the end, and prepared at the beginning |
//! | [`policies`] | the policies that a manifest can name |
//! | [`run`](mod@run) | a run on QEMU, from image to [`report::RunReport`] |
//! | [`serial`] | the machine's serial line, split into what each line means |
//! | [`report`] | what is known after a run, and whether it was good |
//! | [`table`] | reports for people |

pub mod apart;
pub mod bench;
pub mod check;
mod checkout;
pub mod deadlines;
pub mod gantt;
pub mod image;
pub mod output;
pub mod policies;
pub mod report;
pub mod run;
pub mod serial;
pub mod table;
