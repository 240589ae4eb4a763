//! Links the kernel with its own memory map.
#![expect(clippy::expect_used, reason = "runs where the kernel is built, not in it")]
fn main() {
    let dir = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rustc-link-arg-bins=-T{dir}/link.ld");
    println!("cargo:rerun-if-changed=link.ld");
    println!("cargo:rerun-if-changed=../tools/link-kernel");
}
