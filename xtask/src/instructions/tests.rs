use super::*;
use crate::collect::{Numbered, Report};
use protocol::record::{
    Aggregates, ErrorCode, ErrorRecord, Machine as MachineRecord, Metric, Record, Series,
    SnippetResult, Verdict,
};

/// Forms of the tests, out of the catalog.
fn entries() -> Vec<Entry> {
    let wanted =
        ["add r64, r64", "lock add m64, r64", "xor r64, r64", "vaddps zmm, zmm, zmm", "hlt"];
    let all = catalog(Bits::SixtyFour);
    let found = wanted.iter().map(|name| {
        let is =
            |entry: &&Entry| entry.name.eq_ignore_ascii_case(name) || entry.name.starts_with(name);
        all.iter().find(is).unwrap_or_else(|| panic!("{name}")).clone()
    });
    found.collect()
}

fn machine(brand: &str) -> Record {
    let text = r#"{"vendor":"GenuineIntel","brand":"","family":6,"model":94,"stepping":3,
        "topology":{"apic_id":0,"threads_per_core":1,"threads_per_package":1},
        "tsc":{"hz":1,"source":"pit","invariant":false},"apic":{"mode":"xapic","timer_hz":1},
        "processors":[],"memory_bytes":1}"#;
    let mut machine: MachineRecord = serde_json::from_str(text).unwrap();
    machine.brand = brand.to_string();
    Record::Machine(machine)
}

/// A report of items with their cycles, and of some that the processor does not have.
fn report(brand: &str, items: &[(&str, f64)], errors: &[(&str, ErrorCode, &str)]) -> Report {
    let results = (0..).zip(items).map(|(item, &(name, cycles))| {
        let metrics = [("tsc", cycles * 2.0), ("cycles", cycles), ("uops_issued.any", 1.0)];
        let metrics = metrics.map(|(event, value)| {
            let value = Aggregates { min: value, median: value, mean: value, max: value };
            let series = [1, 1].map(|distinct| Series { distinct, ..Series::default() });
            let event = event.to_string();
            Metric {
                event,
                value,
                deterministic: true,
                series,
                counting: None,
                energy: None,
                retired: None,
            }
        });
        Record::Result(SnippetResult {
            item,
            name: name.to_string(),
            misses: Vec::new(),
            verdict: Verdict::None,
            per: 100,
            runs: 3,
            metrics: metrics.to_vec(),
            uncounted: Vec::new(),
            planning: 0,
            controls: Vec::new(),
            restored: Vec::new(),
            unwatched: 0,
            smis: 0,
            emulated: false,
            tsc: [0; 2],
        })
    });
    let errors = errors.iter().map(|&(name, code, text)| {
        Record::Error(ErrorRecord {
            code,
            item: Some(9),
            name: Some(name.to_string()),
            text: text.to_string(),
            fault: None,
            restored: Vec::new(),
            more: false,
        })
    });
    let records = std::iter::once(machine(brand)).chain(results).chain(errors);
    let records = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
    Report { records: records.collect(), ..Report::default() }
}

const ADD: [(&str, f64); 4] = [
    ("latency: add r64, r64 (1 -> 1)", 1.0),
    ("latency: add r64, r64 (2 -> 1; back: movsxd r64, r32; breaking 1)", 2.0),
    ("one register: add r64, r64 (1 -> 1)", 1.0),
    ("throughput: add r64, r64 (8 apart)", 0.25),
];

fn state<'a>(table: &'a Table, form: &str) -> &'a Line {
    table.lines.iter().find(|line| line.form.starts_with(form)).unwrap()
}

#[test]
fn d2_parts_are_joined_and_each_form_says_what_became_of_it() {
    let skipped = "this processor has no AVX512F (CPUID leaf 0x7, EBX bit 16)";
    let one = report("A", &ADD[..2], &[]);
    let other = report(
        "A",
        &[ADD[2], ADD[3], ("latency: movsxd r64, r32 (2 -> 1)", 1.0)],
        &[
            ("throughput: vaddps zmm, zmm, zmm (12 apart)", ErrorCode::Skipped, skipped),
            ("throughput: lock add m64, r64 (8 apart)", ErrorCode::SnippetFault, "it raised #UD"),
        ],
    );
    let table = join(list(&entries()), &[("one", &one), ("other", &other)]).unwrap();
    let add = state(&table, "add");
    assert_eq!(add.state, State::Measured);
    assert_eq!(add.throughput.as_ref().unwrap().value, 0.25);
    assert_eq!(add.same_register, Some(1.0));
    // The way back is known from the other report only, so what its own could not tell stays a bound.
    assert_eq!((add.latency[1].value, add.latency[1].at_most), (1.0, true));
    assert_eq!(state(&table, "vaddps").state, State::Absent(skipped.to_string()));
    assert_eq!(state(&table, "lock add").state, State::Failed("it raised #UD".to_string()));
    assert_eq!(state(&table, "xor").state, State::Open);
    assert_eq!(state(&table, "hlt").state.name(), "refused");
    assert_eq!(state(&table, "movsxd").extension, "", "a form of the report alone");
    let counts = [("measured", 2), ("open", 1), ("absent", 1), ("failed", 1), ("refused", 1)];
    assert_eq!(table.counts(), counts);
    let summary = summary(&table);
    assert_eq!(summary, "6 forms: 2 measured, 1 open, 1 absent, 1 failed, 1 refused\n");
}

#[test]
fn d2_what_was_cut_off_is_partly_measured_and_goes_on() {
    let one = report("A", &ADD[..1], &[]);
    let table = join(list(&entries()), &[("one", &one)]).unwrap();
    assert_eq!(state(&table, "add").state, State::Partly);
    let rest = report("A", &ADD[1..], &[]);
    let table = join(list(&entries()), &[("one", &one), ("rest", &rest)]).unwrap();
    assert_eq!(state(&table, "add").state, State::Measured);
}

#[test]
fn d2_reports_of_two_machines_make_no_table() {
    let [one, other] = ["A", "B"].map(|brand| report(brand, &ADD, &[]));
    let error = join(list(&entries()), &[("one", &one), ("other", &other)]).unwrap_err();
    assert_eq!(error.to_string(), "one and other are not of one machine: its name is `A` and `B`");
    let none = report("A", &[("nop", 1.0)], &[]);
    let error = join(list(&entries()), &[("none", &none)]).unwrap_err();
    assert!(error.to_string().contains("none: the report has no item"), "{error}");
    let empty = Report::default();
    let error = join(list(&entries()), &[("empty", &empty)]).unwrap_err();
    assert_eq!(error.to_string(), "empty: the report has no machine record");
}

#[test]
fn d2_figures_that_differ_are_told() {
    let one = report("A", &ADD, &[]);
    let other = report("A", &[("throughput: add r64, r64 (8 apart)", 0.5)], &[]);
    let table = join(list(&entries()), &[("one", &one), ("other", &other)]).unwrap();
    assert_eq!(table.differing, ["add r64, r64, throughput: 0.25 and 0.5"]);
    assert_eq!(state(&table, "add").throughput.as_ref().unwrap().value, 0.25);
}

#[test]
fn d2_the_forms_for_programs_have_all_of_it() {
    let one = report("A", &ADD, &[]);
    let entries = entries();
    let table = join(list(&entries), &[("one", &one)]).unwrap();
    let csv = csv(&table);
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(csv.as_bytes()).records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), entries.len());
    assert_eq!(
        rows[0].iter().collect::<Vec<_>>(),
        [
            "add r64, r64",
            "o64 01 /r",
            "X64",
            "measured",
            "0.25",
            "1->1=1;2->1=<=1;one register=1",
            "cycles",
            "uops_issued.any=1",
            "",
            ""
        ]
    );
    assert!(rows[4].get(9).unwrap().contains("privileged"));
    let value: serde_json::Value = serde_json::from_str(&json(&table)).unwrap();
    assert_eq!(value["machine"]["brand"], "A");
    assert_eq!(value["forms"][0]["state"]["is"], "measured");
    assert_eq!(value["forms"][0]["same_register"], 1.0);
    let text = super::table(&table, crate::primitives::table::Width::default());
    assert!(text.contains("add r64, r64") && text.contains("in cycles"), "{text}");
}

/// The names of elements and attributes are those of uops.info's file: see the importers of OSACA and uiCA.
#[test]
fn d2_the_xml_has_the_layout_of_uops_info() {
    let one = report("A", &ADD, &[]);
    let entries = entries();
    let table = join(list(&entries), &[("one", &one)]).unwrap();
    let text = xml(&table, &entries, "SKL");
    let general = "RAX,RCX,RDX,RBX,RSP,RBP,RSI,RDI,R8,R9,R10,R11,R12,R13,R14,R15";
    let written = ["AF", "CF", "OF", "PF", "SF", "ZF"].map(|flag| format!("flag_{flag}=\"w\""));
    let expected = format!(
        r#"<root>
  <extension name="X64">
    <instruction asm="ADD" string="ADD (R64, R64)" extension="X64" isa-set="X64" encoding="o64 01 /r">
      <operand idx="1" name="REG0" type="reg" width="64" r="1" w="1">{general}</operand>
      <operand idx="2" name="REG1" type="reg" width="64" r="1">{general}</operand>
      <operand idx="3" name="FLAGS" type="flags" w="1" suppressed="1" {}/>
      <architecture name="SKL">
        <measurement TP_unrolled="0.25" TP="0.25" uops="1">
          <latency start_op="1" target_op="1" cycles="1" cycles_same_reg="1"/>
          <latency start_op="2" target_op="1" cycles="1" cycles_is_upper_bound="1"/>
        </measurement>
      </architecture>
    </instruction>
  </extension>
</root>
"#,
        written.join(" ")
    );
    assert_eq!(text, expected);
}
