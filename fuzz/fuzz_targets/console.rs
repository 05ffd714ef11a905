//! Bytes of any kind that come in on the console's line, and what is lost of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::console::{Lines, MAX_COMMAND_BYTES, Received, parse};

fuzz_target!(|input: Vec<(u8, u8)>| {
    let (mut lines, mut ends) = (Lines::new(), 0_usize);
    for (kind, byte) in input {
        let received = match kind {
            0 => Received::Overrun,
            1 => Received::Damaged,
            _ => Received::Byte(byte),
        };
        ends += usize::from(matches!(received, Received::Byte(b'\r' | b'\n')));
        let Some(line) = lines.take(received) else { continue };
        ends = ends.checked_sub(1).expect("a line comes at its end");
        if let Ok(line) = line {
            assert!(!line.trim().is_empty() && line.len() <= MAX_COMMAND_BYTES);
            let _ = parse(&line);
        }
    }
});
