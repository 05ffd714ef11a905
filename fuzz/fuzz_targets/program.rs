//! A linked file of any bytes, and a program of any bytes as the firmware reads it, after a right sum too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::program::{Program, sum};
use xtask::program::{Wanted, read};

fuzz_target!(|bytes: &[u8]| {
    let _ = Program::unpack(bytes);
    let summed = [&sum(bytes).to_le_bytes()[..], bytes].concat();
    let _ = Program::unpack(&summed);
    let wanted = Wanted { functions: vec!["f".to_string()], ..Wanted::default() };
    if let Ok(linked) = read(bytes, &wanted) {
        assert!(Program::unpack(&linked.bytes).is_ok());
    }
});
