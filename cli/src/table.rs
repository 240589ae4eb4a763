//! Reports for people.
mod counters;
mod deadlines;
mod fault;
mod policies;
mod records;
mod rows;
mod run;
mod system;
mod units;

pub use deadlines::deadlines;
pub use policies::policies;
pub use run::{Detail, run};
pub use system::{sizes, system};

pub(crate) use rows::Rows;
