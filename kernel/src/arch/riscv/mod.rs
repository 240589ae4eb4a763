//! What harts have in common, whichever way they keep guests apart; and the numbers of all control and status registers, those of the H
//! extension and of VS-mode too ([`csr`]).
pub mod clear;
pub mod clock;
pub mod csr;
pub mod fence;
pub mod firmware;
#[cfg(feature = "sbi-timer")]
pub mod firmware_timer;
pub mod float;
pub mod hart;
pub mod imsic;
pub mod start;
pub mod vector;
