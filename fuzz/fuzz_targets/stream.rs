//! A serial line of any bytes, in two pieces: cutting it must not change what is read. Under a key that the bytes were
//! not made with, there is no record in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::authentication::Key;
use protocol::stream::{Event, Reader};

fuzz_target!(|bytes: &[u8]| {
    let (mut whole, mut cut) = (Reader::new(), Reader::new());
    let mut events = whole.feed(bytes);
    let middle = bytes.len() / 2;
    let mut pieces = cut.feed(&bytes[..middle]);
    pieces.extend(cut.feed(&bytes[middle..]));
    events.extend(whole.finish());
    pieces.extend(cut.finish());
    assert_eq!(events, pieces);
    let mut keyed = Reader::with_key(Key::new(*b"none of the text"));
    let mut events = keyed.feed(bytes);
    events.extend(keyed.finish());
    assert!(!events.iter().any(|event| matches!(event, Event::Record { .. })));
});
