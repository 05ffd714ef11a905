//! Links the loader at the address that a BIOS starts boot sectors at.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    println!("cargo:rerun-if-changed=link.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=-T{here}/link.ld");
        println!("cargo:rustc-link-arg-bins=--no-pie");
    }
}
