//! Tests of the whole system in the emulator.
