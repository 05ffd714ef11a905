use super::*;
use proptest::prelude::*;
use std::vec;

const BYTES: usize = HEADER_BYTES + 600;
const TERMS: Terms = Terms {
    image: 7,
    boot: 0x1234,
    bytes: 0,
    set_variable: 0x7e00_1000,
    query_variables: 0x7e00_2000,
    mapped_gib: 4,
};

fn prepared() -> Vec<u8> {
    let mut region = vec![0xa5; BYTES];
    prepare(&mut region, &TERMS);
    region
}

fn written(lines: &[&str], after: Option<After>) -> Vec<u8> {
    let mut region = prepared();
    let mut writer = Writer::open(&mut region, |_| ()).unwrap();
    for line in lines {
        writer.push(line.as_bytes());
    }
    if let Some(after) = after {
        writer.finish(after);
    }
    region
}

#[test]
fn a_report_comes_back_as_it_was_written() {
    let mut region = prepared();
    assert_eq!(read(&region), Found::Nothing);
    let writer = Writer::open(&mut region, |_| ()).unwrap();
    assert_eq!(writer.terms, Terms { bytes: BYTES as u64, ..TERMS });
    for after in [After::Show, After::Leave, After::PowerOff] {
        let region = written(&["\r\n", "{1}\r\n", "{2}\r\n"], Some(after));
        let expected = Found::Report { image: 7, bytes: b"{1}\r\n{2}\r\n", whole: Some(after) };
        assert_eq!(read(&region), expected);
    }
}

#[test]
fn a_run_that_was_cut_off_leaves_its_whole_lines() {
    let mut region = written(&["{1}\r\n", "{2}\r\n"], None);
    let part = Found::Report { image: 7, bytes: b"{1}\r\n{2}\r\n", whole: None };
    assert_eq!(read(&region), part);
    // The third line was written, its note only in part.
    region[HEADER_BYTES + 10..][..5].copy_from_slice(b"{3}\r\n");
    let older = PROGRESS_AT[1];
    region[older..older + 9].fill(0xff);
    assert_eq!(read(&region), part);
}

#[test]
fn x1_the_item_that_runs_is_noted_before_it_does() {
    let mut region = prepared();
    assert_eq!(running(&region), None);
    let mut writer = Writer::open(&mut region, |_| ()).unwrap();
    writer.running(0, "first");
    let long = "\u{1f980}".repeat(NAME_BYTES);
    writer.running(7, &long);
    let (index, name) = running(&region).unwrap();
    assert_eq!(index, 7);
    assert!(long.starts_with(&name) && name.len() > NAME_BYTES - 4, "{name}");
    // Another boot has noted nothing, and a note that was written in part is none.
    region[RUNNING_AT + 9] ^= 1;
    assert_eq!(running(&region), None);
    assert_eq!(running(&prepared()), None);
    assert_eq!(running(&[0; 8]), None);
}

/// A report that has no room for its end is a part, but no item was cut off in it: the machine was not reset.
#[test]
fn x1_a_run_that_is_over_has_no_item_that_runs() {
    for (length, whole) in [(5, Some(After::Show)), (BYTES, None)] {
        let mut region = prepared();
        let mut writer = Writer::open(&mut region, |_| ()).unwrap();
        writer.running(7, "last");
        writer.push(b"{1}\r\n");
        writer.push(&vec![b'x'; length]);
        let cut_off = writer.region.to_vec();
        writer.finish(After::Show);
        assert!(matches!(read(&region), Found::Report { whole: found, .. } if found == whole));
        assert_eq!(running(&cut_off), Some((7, "last".to_string())));
        assert_eq!(running(&region), None);
    }
}

#[test]
fn a_line_that_never_left_the_cache_is_left_out() {
    let mut region = written(&["{1}\r\n", "{2}\r\n"], None);
    region[HEADER_BYTES + 5..][..5].fill(0);
    assert_eq!(read(&region), Found::Report { image: 7, bytes: b"{1}\r\n", whole: None });
    region[HEADER_BYTES] = 0;
    assert!(matches!(read(&region), Found::Damaged { bytes } if bytes.len() == 10));
}

#[test]
fn what_does_not_fit_makes_it_a_part() {
    let long = "x".repeat(590);
    let region = written(&[&long, "0123456789abc", "later"], Some(After::Show));
    assert_eq!(read(&region), Found::Report { image: 7, bytes: long.as_bytes(), whole: None });
}

#[test]
fn a_region_is_written_once() {
    let mut region = written(&["{1}\r\n"], None);
    assert!(Writer::open(&mut region, |_| ()).is_none());
    clear(&mut region);
    assert!(Writer::open(&mut region, |_| ()).is_none());
    assert_eq!(read(&region), Found::Nothing);
    // A smaller piece of memory than the terms say.
    let mut region = prepared();
    assert!(Writer::open(&mut region[..BYTES - 1], |_| ()).is_none());
}

#[test]
fn every_write_is_flushed() {
    use std::cell::Cell;
    std::thread_local!(static FLUSHED: Cell<usize> = const { Cell::new(0) });
    let mut region = prepared();
    let mut writer = Writer::open(&mut region, |bytes| {
        FLUSHED.with(|flushed| flushed.set(flushed.get() + bytes.len()));
    })
    .unwrap();
    writer.push(b"{1}\r\n");
    writer.finish(After::Show);
    assert_eq!(FLUSHED.with(Cell::get), 5 + 2 * (Progress::BYTES + 4));
}

/// A note of any length and state; `None`: that which is there stays.
fn note() -> impl Strategy<Value = Option<Progress>> {
    let state = prop_oneof![
        Just(State::Running),
        Just(State::Complete(After::Show)),
        Just(State::Complete(After::PowerOff)),
    ];
    let length = prop_oneof![0u64..=600, any::<u64>()];
    // Nothing has a checksum of 0.
    let crc = prop_oneof![Just(0), Just(crc32(b"{1}\r\n{2}\r\n")), any::<u32>()];
    let fields = (any::<u64>(), length, crc, state, prop_oneof![Just(0), any::<u64>()]);
    prop::option::of(fields.prop_map(|(turn, length, crc, state, lost)| Progress {
        turn,
        length,
        crc,
        state,
        lost,
    }))
}

proptest! {
    /// Whatever bytes change: what is taken for a whole report is one.
    #[test]
    fn damage_is_never_taken_for_a_report(at in 0..BYTES, to: u8) {
        let whole = ["{\"seq\":0}\r\n", "{\"seq\":1}\r\n", "{\"seq\":2}\r\n"];
        let text = whole.concat();
        let mut region = written(&whole, Some(After::Show));
        region[at] = to;
        match read(&region) {
            Found::Report { bytes, whole: Some(After::Show), image: 7 } => prop_assert_eq!(bytes, text.as_bytes()),
            Found::Report { bytes, whole: None, image: 7 } => prop_assert!(text.as_bytes().starts_with(bytes)),
            Found::Nothing | Found::Damaged { .. } => {}
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn no_memory_makes_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..HEADER_BYTES + 64)) {
        let _ = read(&bytes);
        let _ = Writer::open(&mut bytes, |_| ());
    }

    /// Fields of any value whose checksums are right, in memory that may end before the region does.
    #[test]
    fn no_fields_make_it_panic(
        is_new: bool, region_bytes in prop_oneof![Just(BYTES as u64), any::<u64>()], boot: u64,
        notes in [note(), note()], item in prop::option::of((any::<u32>(), 0..=300u32)),
        changes in prop::collection::vec((0..BYTES, any::<u8>()), 0..4),
        end in prop::option::of(0..BYTES),
    ) {
        let mut region = if is_new { prepared() } else { written(&["{1}\r\n", "{2}\r\n"], None) };
        Terms { bytes: region_bytes, boot, ..TERMS }.write(&mut region);
        for (note, at) in notes.into_iter().zip(PROGRESS_AT) {
            note.iter().for_each(|note| note.write(&mut region[at..]));
        }
        if let Some((index, bytes)) = item {
            let fields = Fields(Vec::new()).with(&index.to_le_bytes()).with(&bytes.to_le_bytes());
            fields.with(&[b'x'; 300][..bytes as usize]).put(&mut region[RUNNING_AT..]);
        }
        for (at, to) in changes {
            region[at] = to;
        }
        region.truncate(end.unwrap_or(BYTES));
        if let Found::Report { bytes, .. } | Found::Damaged { bytes } = read(&region) {
            prop_assert!(!bytes.is_empty() && bytes.len() <= region.len() - HEADER_BYTES);
        }
        let name = running(&region).map_or(0, |(_, name)| name.len());
        prop_assert!(name <= NAME_BYTES);
        if let Some(mut writer) = Writer::open(&mut region, |_| ()) {
            writer.running(1, "item");
            writer.push(b"{1}\r\n");
            writer.finish(After::Show);
            let is_there = writer.report() == b"{1}\r\n";
            prop_assert_eq!(writer.is_whole(), is_there);
        }
    }
}

/// ACPI's tables have memory of the same type, and firmware merges neighbours.
#[test]
fn x5_the_region_is_found_by_its_header_among_memory_of_its_type() {
    let header = |bytes: u64| -> &'static [u8] {
        let mut region = vec![0; HEADER_BYTES + 1];
        prepare(&mut region, &Terms::default());
        Terms { bytes, ..Terms::default() }.write(&mut region);
        region.leak()
    };
    let memory = |address: u64| (address == 3 * ALIGN).then(|| header(256 << 10));
    let found = Some((3 * ALIGN, 256 << 10));
    assert_eq!(find(3 * ALIGN..3 * ALIGN + (256 << 10), memory), found);
    // Behind other memory, which does not begin at a multiple, and before some.
    assert_eq!(find(ALIGN + 4096..9 * ALIGN, memory), found);
    // Elsewhere, larger than the piece, and with a header that has changed.
    assert_eq!(find(4 * ALIGN..9 * ALIGN, memory), None);
    assert_eq!(find(2 * ALIGN..3 * ALIGN + 4096, memory), None);
    let changed = |address: u64| {
        let mut page = memory(address)?.to_vec();
        page[20] ^= 1;
        Some(&*page.leak())
    };
    assert_eq!(find(0..9 * ALIGN, changed), None);
    assert_eq!(find(u64::MAX - 4096..u64::MAX, memory), None);
}
