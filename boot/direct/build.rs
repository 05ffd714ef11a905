//! Links the loader at its fixed address.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    println!("cargo:rerun-if-changed=link.ld");
    println!("cargo:rustc-link-arg-bins=-T{here}/link.ld");
    println!("cargo:rustc-link-arg-bins=--no-pie");
}
