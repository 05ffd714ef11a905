//! Tells the two builds apart: `run --crate` sets the variable, and builds what runs on the bare machine.

fn main() {
    println!("cargo::rerun-if-env-changed=BARECOUNT_BARE");
    println!("cargo::rustc-check-cfg=cfg(barecount_bare)");
    if std::env::var_os("BARECOUNT_BARE").is_some() {
        println!("cargo::rustc-cfg=barecount_bare");
    }
}
