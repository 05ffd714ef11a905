//! Addresses of the firmware become functions and lines.

use super::*;

/// A function that no other symbol of this program resembles.
#[inline(never)]
fn landmark(value: u32) -> u32 {
    std::hint::black_box(value).rotate_left(3)
}

#[test]
fn i5_addresses_of_the_firmware_become_functions_and_lines() {
    // This very program is an ELF file with symbols and lines.
    let file = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let parsed = object::File::parse(&*bytes).unwrap();
    use object::{Object, ObjectSymbol};
    std::hint::black_box(landmark as fn(u32) -> u32);
    let symbol = parsed.symbols().find(|symbol| {
        symbol.name().is_ok_and(|name| name.contains("samples") && name.contains("landmark"))
            && symbol.is_definition()
    });
    let symbol = symbol.expect("the landmark of these tests");
    let base = 0x4000_0000;
    let resolver = Resolver::new(&[], Some((&file, base)));
    let place = resolver.place(&result(), 0, base + symbol.address(), "", 64);
    assert!(place.symbol.contains("landmark"), "{place:?}");
    assert!(
        place
            .line
            .as_deref()
            .is_some_and(|line| line.starts_with("xtask/src/samples/tests/firmware_addresses.rs:")),
        "{place:?}"
    );
    assert!(!place.instruction.is_empty() && place.instruction != "(bad)", "{place:?}");
    let nowhere = resolver.place(&result(), 0, 0x10, "", 64);
    assert_eq!((nowhere.symbol.as_str(), nowhere.line), ("0x10", None));
    // The linker's `_end`, a symbol without an end, is the last below this address.
    let behind = resolver.place(&result(), 0, base + 0x7000_0000, "", 64);
    assert_eq!((behind.symbol.as_str(), behind.line), ("0xb0000000", None));
}
