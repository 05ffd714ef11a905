//! Links the loader at its fixed address.

fn main() {
    println!("cargo:rerun-if-changed=link.ld");
    // Below the workspace, where cargo calls the compiler: an absolute path would be that of a checkout which has moved.
    println!("cargo:rustc-link-arg-bins=-Tboot/direct/link.ld");
    println!("cargo:rustc-link-arg-bins=--no-pie");
}
