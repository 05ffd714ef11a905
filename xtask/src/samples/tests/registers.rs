//! Values of counters and vector registers at each sample.

use super::*;

#[test]
fn s1_values_of_counters_and_vector_registers_have_tables() {
    let mut chunks = Vec::new();
    for (first, values) in [(0u64, vec![100u64, 7, 177, 7]), (2, vec![260, 9])] {
        let mut chunk = Samples { item: 4, first, ..Samples::default() };
        let mut last = [0; 2];
        for n in 0..values.len() as u64 / 2 {
            chunk.push(&mut last, 0x1000, n, 1, 0);
            // XMM3 alone is not 0, and twice the same.
            let vectors = (0..32).map(|half| if half == 7 { (first + n) / 2 + 1 } else { 0 });
            chunk.vectors.extend(vectors.map(Hex));
        }
        chunk.values = values;
        chunks.push(Record::Samples(chunk));
    }
    let values = vec!["cycles".to_string(), "r00c4".to_string()];
    chunks.push(Record::Sample(SampleResult { addresses: vec![], values, ..result() }));
    let whole = report(chunks);
    let profile = &Profile::of(&whole, &Resolver::default())[0];
    let [cycles, branches] = &profile.values[..] else { panic!("{:?}", profile.values) };
    assert_eq!((cycles.samples, cycles.ends, cycles.steps), (3, [100, 260], Some((77, 80.0, 83))));
    assert_eq!((branches.ends, branches.steps), ([7, 9], Some((0, 1.0, 2))));
    let [row] = &profile.vectors[..] else { panic!("{:?}", profile.vectors) };
    assert_eq!((&*row.name, row.different, &row.ends), ("xmm3", 2, &[vec![0, 1], vec![0, 2]]));
    let context = Context::default();
    let text = render(&whole, &context, Format::Table);
    let text = anstream::adapter::strip_str(&text).to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["cycles 3 100 260 77 80.0 83", "xmm3 2 0x00000000000000010000000000000000"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let csv = render(&whole, &context, Format::Csv);
    for part in [
        "value of cycles from sample to sample, least",
        "value of r00c4 at the last sample,9,9",
        "different values of xmm3,2,2",
    ] {
        assert!(csv.contains(part), "{part}: {csv}");
    }
    let json = render(&whole, &context, Format::Json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let records = json["records"].as_array().unwrap();
    let values: Vec<_> =
        records.iter().filter(|one| one["type"] == "samples").map(|one| &one["values"]).collect();
    assert_eq!(
        values,
        [&serde_json::json!([100, 7, 177, 7]), &serde_json::json!([260, 9])],
        "{json}"
    );
}

/// Each kind has rows of its own: those of its registers that are not 0, and one if all are.
#[test]
fn s1_registers_beyond_xmm_have_rows_with_their_whole_values() {
    use protocol::job::sampling::VectorRegisters;
    let mut chunk = Samples { item: 4, ..Samples::default() };
    let mut last = [0; 2];
    for sample in 0..3u64 {
        chunk.push(&mut last, 0x1000, sample, 1, 0);
        for kind in VectorRegisters::ALL {
            let (count, each) = kind.shape();
            // The second register counts in its highest word, and is 5 in its lowest one; of YMM all are 0.
            let words = (0..count * each).map(|word| match (kind, word / each, word % each) {
                (VectorRegisters::Ymm, ..) => 0,
                (VectorRegisters::Opmask, 1, _) => sample,
                (_, 1, 0) => 5,
                (_, 1, place) if place == each - 1 => sample,
                _ => 0,
            });
            chunk.vectors_of_mut(kind).extend(words.map(Hex));
        }
    }
    let result = Record::Sample(SampleResult { addresses: vec![], ..result() });
    let whole = report(vec![Record::Samples(chunk), result]);
    let profile = &Profile::of(&whole, &Resolver::default())[0];
    let rows: Vec<_> = profile.vectors.iter().map(|row| (&*row.name, row.different)).collect();
    assert_eq!(rows, [("xmm1", 3), ("ymm0", 1), ("zmm1", 3), ("zmm17", 3), ("k1", 3)]);
    let [_, _, first, last] = profile.vectors[2].cells();
    assert_eq!(first, format!("0x{:0127x}5", 0));
    assert_eq!(last, format!("0x{:016x}{:0111x}5", 2, 0));
    assert_eq!(profile.vectors[4].cells()[2..], ["0x0000000000000000", "0x0000000000000002"]);
    let csv = render(&whole, &Context::default(), Format::Csv);
    for part in ["different values of zmm17,3,3", "different values of k1,3,3"] {
        assert!(csv.contains(part), "{part}: {csv}");
    }
    let json = render(&whole, &Context::default(), Format::Json);
    for key in ["ymm", "zmm", "hi16_zmm", "opmasks"] {
        assert!(json.contains(&format!("\"{key}\":")), "{key}: {json}");
    }
}
