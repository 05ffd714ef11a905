//! A linked file of any bytes, and a program of any bytes as the firmware reads it, after a right sum too. Beside a function that few
//! files have, it is read with none, so that its contents are looked at: `fuzz/seeds/program` has a file to begin with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::program::{Program, sum};
use xtask::program::{Wanted, read};

fuzz_target!(|bytes: &[u8]| {
    let _ = Program::unpack(bytes);
    let summed = [&sum(bytes).to_le_bytes()[..], bytes].concat();
    let _ = Program::unpack(&summed);
    for functions in [vec![], vec!["f".to_string()]] {
        let wanted = Wanted { functions, ..Wanted::default() };
        if let Ok(linked) = read(bytes, &wanted) {
            assert!(Program::unpack(&linked.bytes).is_ok());
        }
    }
});
