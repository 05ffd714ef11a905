//! Links the programs at a fixed address: nothing has to relocate them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=--no-pie");
}
