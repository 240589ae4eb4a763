//! `ainori bench`: experiments, as files, run to figures that anyone can take again.
//!
//! An experiment (`experiments/NAME.toml`) names systems, what is varied in them, what is taken from each run, and the
//! bars that the figures must keep. Its way to a report:
//!
//! | module | step |
//! |---|---|
//! | [`experiment`] | the file, read |
//! | [`template`] | a system's manifest with `${parameter}` filled in |
//! | [`plan`] | cases multiplied out into runs, all that can be wrong found before the first one starts |
//! | [`only`] | the part of an experiment that `--only` asks for |
//! | [`key`] | what a run depends on, as a hash |
//! | [`store`] | finished runs by key, so that an interrupted bench goes on where it stopped |
//! | [`engine`] | the runs that are missing, as many at a time as there are cores |
//! | [`execute`], [`bare`], [`paths`], [`windows`], [`tlb`] | one run: on Ainori, or the same guest on the bare machine; exact counts beside it |
//! | [`document`], [`code`] | what is known after a run, as JSON that metrics point into; how much code its policy is |
//! | [`expression`], [`definitions`], [`lookup`] | what an experiment computes of its figures, and which case it means |
//! | [`evaluate`] | metrics, their median and range |
//! | [`judge`], [`verdict`] | bars and derived figures: holds, fails, or can't be told |
//! | [`results`], [`table`], [`charts`], [`chart`], [`look`], [`html`] | JSON, terminal, what charts show, SVG and its colours, report |
//! | [`report`], [`pages`] | a report's files, made from results alone; which charts are committed |
//! | [`slack`] | which bars can hardly fail |
//! | [`again`] | results of before, judged by the bars of today |
//! | [`quote`] | figures in README.md and docs/, made from results |
//! | [`compare`] | two results, and what changed beyond the error bar |
//! | [`provenance`], [`versions`] | what a result was made with, and whether that is what is built now |
//! | [`verify`], [`sameness`] | some runs of results once more, to the byte |
//!
//! Around it: [`times`] (how long runs take), [`progress`], and for several machines [`shard`] and [`merge`].
pub mod again;
pub mod args;
mod bare;
mod chart;
mod charts;
mod code;
mod command;
pub mod compare;
mod definitions;
mod document;
pub mod engine;
mod evaluate;
mod execute;
pub mod experiment;
mod expression;
#[cfg(test)]
mod fixture;
mod html;
pub mod judge;
mod key;
mod look;
mod lookup;
mod merge;
pub mod only;
mod pages;
mod paths;
pub mod plan;
mod progress;
mod provenance;
pub mod quote;
mod report;
pub mod results;
mod sameness;
pub mod shard;
pub mod slack;
mod store;
mod table;
pub mod template;
mod times;
mod tlb;
pub mod verdict;
mod verify;
mod versions;
mod windows;

pub use command::command;
