//! The analysis against textbooks, against an exact schedule, and on whole systems.
mod analysis;
mod response;
mod siblings;
mod windows;
