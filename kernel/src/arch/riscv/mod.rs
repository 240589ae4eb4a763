//! What harts have in common, whichever way they keep guests apart.
pub mod clear;
pub mod csr;
pub mod firmware;
pub mod float;
pub mod isa;
pub mod start;
pub mod vector;
