mod board;
mod isa;
mod range;
mod sifive_u;
