//! Packs the project's event tables once, so that no command has to read fifty CSV files.

use events::pack::Sources;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let block = Sources::embedded().and_then(|sources| sources.pack());
    let block = block.unwrap_or_else(|error| panic!("the event tables do not pack: {error}"));
    let folder = std::env::var_os("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&folder).join("events.bin"), block)
        .expect("cargo's folder can be written");
}
