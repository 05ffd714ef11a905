//! Links the program at a fixed address: nothing on its system would relocate it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-bins=--no-pie");
}
