mod board;
mod isa;
mod range;
