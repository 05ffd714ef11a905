//! The generated code of gathers and scatters, decoded.

use crate::job::form::catalog::{self, Entry};
use crate::job::form::chain::Made;
use iced_x86::{Decoder, DecoderOptions, Instruction, Register};

fn all() -> Vec<Entry> {
    let indexed = |entry: &Entry| entry.form.as_ref().is_ok_and(|form| form.indexed().is_some());
    catalog::all().into_iter().filter(indexed).collect()
}

/// The instructions of the form in a body, each with the line before it.
fn own(made: &Made) -> Vec<(Instruction, String)> {
    let lines: Vec<&str> = made.body.lines().collect();
    let places = (0..lines.len()).filter(|&index| lines[index].starts_with(".byte"));
    let decode = |index: usize| {
        let bytes = lines[index].trim_start_matches(".byte").split(',');
        let byte =
            |text: &str| u8::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
        let bytes: Vec<u8> = bytes.map(byte).collect();
        let before = index.checked_sub(1).map_or("", |before| lines[before]);
        (Decoder::new(64, &bytes, DecoderOptions::NONE).decode(), before.to_string())
    };
    places.map(decode).collect()
}

/// Its mask: a register of its own, or the one of EVEX.
fn mask(one: &Instruction) -> Register {
    if one.has_op_mask() { one.op_mask() } else { one.op2_register() }
}

/// Each has its own elements, all in the page at R14, and a mask that was set just before.
#[test]
fn d2_gathers_and_scatters_have_a_new_mask_each_time_and_stay_in_a_page() {
    let all = all();
    assert!(all.len() > 40, "{}", all.len());
    for entry in &all {
        let made = catalog::measure(entry).made;
        let throughput = made.iter().find(|made| made.case.what() == "throughput").unwrap();
        let ones = own(throughput);
        assert!(ones.len() >= 10, "{}", throughput.case);
        for (index, (one, before)) in ones.iter().enumerate() {
            let name = &entry.name;
            assert_eq!(one.code(), entry.code, "{name}");
            assert_eq!((one.memory_base(), one.memory_index_scale()), (Register::R14, 1), "{name}");
            assert!(one.memory_index().is_vector_register(), "{name}");
            assert_eq!(one.memory_displacement64(), 64 * index as u64, "{name}");
            let mask = format!("{:?}", mask(one)).to_lowercase();
            let set = before.contains("or") && before.contains(&format!(" {mask}, "));
            assert!(set, "{name}: {mask} by {before}");
            // The last element, the 16th of 32 bits or the 8th of 64, ends within 4096 bytes.
            let elements: u64 = if one.vsib() == Some(true) { 8 } else { 16 };
            assert!((elements - 1) * 64 + one.memory_displacement64() + 8 <= 4096, "{name}");
        }
        let (_, step) = entry.form.as_ref().unwrap().indexed().unwrap();
        let step = format!("add rcx, {}\nadd eax, 64\n", step / 8);
        assert!(throughput.init.contains(&step), "{}", throughput.init);
    }
}

#[test]
fn d2_a_gather_waits_for_indices_mask_address_and_its_old_value() {
    let all = all();
    let of = |name: &str| catalog::measure(all.iter().find(|entry| entry.name == name).unwrap());
    let names = |name: &str| -> Vec<String> {
        of(name).made.iter().map(|made| made.case.to_string()).collect()
    };
    assert_eq!(
        names("vgatherdps ymm, vm32y, ymm"),
        [
            "latency: vgatherdps ymm, vm32y, ymm (1 -> 1; breaking 3)",
            "latency: vgatherdps ymm, vm32y, ymm (2 -> 1; back: vpor ymm, ymm, ymm; breaking 1, 3)",
            "latency: vgatherdps ymm, vm32y, ymm (3 -> 1; back: vpor ymm, ymm, ymm; breaking 1)",
            "latency: vgatherdps ymm, vm32y, ymm (address -> 1; back: vmovq r64, xmm + xor r64, r64; breaking 1, 3)",
            "throughput: vgatherdps ymm, vm32y, ymm (12 apart; with vpor ymm, ymm, ymm)",
        ]
    );
    assert_eq!(
        names("vpgatherqd ymm {k}, vm64z")[1..3],
        [
            "latency: vpgatherqd ymm {k}, vm64z (2 -> 1; back: vpord zmm, zmm, zmm; breaking 1, mask)",
            "latency: vpgatherqd ymm {k}, vm64z (mask -> 1; back: vptestnmd k, ymm, ymm; breaking 1)",
        ]
    );
    let scatter = of("vscatterdps vm32z {k}, zmm");
    assert_eq!(scatter.made.len(), 1);
    assert_eq!(scatter.missing[0].reason, "what it writes is memory at several addresses");
}
