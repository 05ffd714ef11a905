//! Links the firmware at the place that `arch::memory::layout` has for it.
//!
//! As a position-independent file it would carry 24 bytes for each pointer in its data, 71 KB in all, and a boot loader
//! would walk the page tables for each.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=--no-pie");
    println!("cargo:rustc-link-arg-bins=--image-base=0xffffffff80000000");
}
