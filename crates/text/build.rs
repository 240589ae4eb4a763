//! Tells the compiler that `cfg(loom)` (see `Cargo.toml`) is meant, not misspelt.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(loom)");
}
