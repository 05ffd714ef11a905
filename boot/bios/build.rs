//! Links the loader at the address that a BIOS starts boot sectors at.

fn main() {
    println!("cargo:rerun-if-changed=link.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        // Below the workspace, where cargo calls the compiler: an absolute path would be that of a checkout which has moved.
        println!("cargo:rustc-link-arg-bins=-Tboot/bios/link.ld");
        println!("cargo:rustc-link-arg-bins=--no-pie");
    }
}
