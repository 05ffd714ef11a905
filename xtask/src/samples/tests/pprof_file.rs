//! The file for pprof: what a reader gets back, and the numbers of its fields.

use super::*;

#[test]
fn i5_a_pprof_file_reads_back_with_every_sample() {
    let report = report(vec![Record::Sample(result())]);
    let bytes = pprof::write(&Profile::of(&report, &resolver())).unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
    let profile = proto::Profile::decode(&plain[..]).unwrap();
    let text = |index: i64| profile.string_table[index as usize].as_str();
    assert_eq!(text(0), "", "the format wants the empty text first");
    let kinds: Vec<_> =
        profile.sample_type.iter().map(|kind| (text(kind.r#type), text(kind.unit))).collect();
    assert_eq!(kinds, [("samples", "count"), ("cycles", "count"), ("timer", "nanoseconds")]);
    let stack = |sample: &proto::Sample| -> Vec<&str> {
        let location = |id: &u64| profile.location.iter().find(|one| one.id == *id).unwrap();
        let function = |id| profile.function.iter().find(|one| one.id == id).unwrap();
        let ids = sample.location_id.iter().map(|id| location(id).line[0].function_id);
        ids.map(|id| text(function(id).name)).collect()
    };
    let seen: Vec<_> = profile.sample.iter().map(|one| (stack(one), &one.value[..])).collect();
    assert_eq!(seen[0], (vec!["work:inner", "work (ring 0)"], &[6, 600, 0][..]));
    assert_eq!(seen[3], (vec!["work:inner", "work (ring 0)"], &[3, 0, 15_000][..]));
    let sums: i64 = profile.sample.iter().map(|sample| sample.value[0]).sum();
    assert_eq!(sums, 12);
}

/// The bytes themselves: a reader that knows nothing of our types finds the fields where `profile.proto` has them.
#[test]
fn i5_the_pprof_fields_have_the_formats_numbers() {
    let location = proto::Location {
        id: 1,
        mapping_id: 0,
        address: 2,
        line: vec![proto::Line { function_id: 3, line: 4 }],
    };
    assert_eq!(location.encode_to_vec(), [0x08, 1, 0x18, 2, 0x22, 4, 0x08, 3, 0x10, 4]);
    let sample = proto::Sample {
        location_id: vec![1, 2],
        value: vec![3],
        label: vec![proto::Label { key: 1, str: 2, num: 0 }],
    };
    assert_eq!(sample.encode_to_vec(), [0x0a, 2, 1, 2, 0x12, 1, 3, 0x1a, 4, 0x08, 1, 0x10, 2]);
    let function = proto::Function { id: 1, name: 2, system_name: 3, filename: 4 };
    assert_eq!(function.encode_to_vec(), [0x08, 1, 0x10, 2, 0x18, 3, 0x20, 4]);
    let profile = proto::Profile {
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
        string_table: vec!["".into(), "a".into()],
        default_sample_type: 1,
        ..proto::Profile::default()
    };
    assert_eq!(
        profile.encode_to_vec(),
        [0x0a, 4, 0x08, 1, 0x10, 2, 0x32, 0, 0x32, 1, b'a', 0x70, 1]
    );
}
