//! A serial line of any bytes, in two pieces: cutting it must not change what is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::stream::Reader;

fuzz_target!(|bytes: &[u8]| {
    let (mut whole, mut cut) = (Reader::new(), Reader::new());
    let mut events = whole.feed(bytes);
    let middle = bytes.len() / 2;
    let mut pieces = cut.feed(&bytes[..middle]);
    pieces.extend(cut.feed(&bytes[middle..]));
    events.extend(whole.finish());
    pieces.extend(cut.finish());
    assert_eq!(events, pieces);
});
