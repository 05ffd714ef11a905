//! What a bring-up found, as tables: for the terminal and for the page.

use crate::collect::Report;
use crate::replay::name;
use protocol::record::{AcpiTables, CpuidLeaves, Measure, Msrs, Record};

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What is in it, in a sentence without its full stop.
    pub title: String,
    /// Names of the columns, and whether they hold numbers.
    pub heads: Vec<(&'static str, bool)>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// So long that it is for a page alone.
    pub long: bool,
}

/// Rows with what must be known in addition to them.
impl Table {
    fn new(title: impl Into<String>, heads: &[(&'static str, bool)]) -> Self {
        Self { title: title.into(), heads: heads.to_vec(), rows: Vec::new(), long: false }
    }
}

/// Everything that the bring-ups of a report found, but their checks.
#[must_use]
pub fn tables(report: &Report) -> Vec<Table> {
    let mut measures = Table::new(
        "Measured on this machine",
        &[
            ("what", false),
            ("unit", false),
            ("runs", true),
            ("least", true),
            ("middle", true),
            ("greatest", true),
            ("told", true),
            ("checks allow", true),
        ],
    );
    let mut acpi = Table::new(
        "ACPI tables",
        &[
            ("table", false),
            ("address", false),
            ("bytes", true),
            ("revision", true),
            ("made by", false),
            ("facts", false),
        ],
    );
    let (mut registers, mut leaves) = (Vec::new(), Vec::new());
    for numbered in &report.records {
        match &numbered.record {
            Record::Measure(one) => measures.rows.push(measure(one)),
            Record::Acpi(tables) => acpi.rows.extend(acpi_rows(tables)),
            Record::Msrs(msrs) => registers.push(msr_table(msrs)),
            Record::Cpuid(cpuid) => leaves.push(leaf_table(cpuid)),
            _ => {}
        }
    }
    let all = [measures].into_iter().chain(registers).chain([acpi]).chain(leaves);
    all.filter(|table| !table.rows.is_empty()).collect()
}

fn measure(one: &Measure) -> Vec<String> {
    let optional = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    let what = match one.cpu {
        Some(cpu) => format!("{}, processor {cpu}", one.name),
        None => one.name.clone(),
    };
    let values = [one.min, one.median, one.max].map(|value| value.to_string());
    let [min, median, max] = values;
    let unit = one.unit.clone();
    Vec::from([
        what,
        unit,
        one.runs.to_string(),
        min,
        median,
        max,
        optional(one.told),
        optional(one.bound),
    ])
}

fn acpi_rows(tables: &AcpiTables) -> impl Iterator<Item = Vec<String>> + '_ {
    tables.tables.iter().map(|one| {
        let (address, bytes) = (one.address.to_string(), one.bytes.to_string());
        Vec::from([
            one.signature.clone(),
            address,
            bytes,
            one.revision.to_string(),
            one.oem.clone(),
            one.facts.clone(),
        ])
    })
}

/// Those that hold something; the others are told in the title.
fn msr_table(msrs: &Msrs) -> Table {
    let zeros = msrs.values.iter().filter(|[_, value]| value.0 == 0).count();
    let when =
        if msrs.found { "as the machine's firmware left them" } else { "during the bring-up" };
    let title = format!(
        "Registers of processor {} {when} ({zeros} more hold 0, {} raise an exception)",
        msrs.cpu,
        msrs.absent.len()
    );
    let mut table = Table::new(title, &[("MSR", false), ("name", false), ("value", false)]);
    let set = msrs.values.iter().filter(|[_, value]| value.0 != 0);
    let row = |[msr, value]: &[protocol::hex::Hex; 2]| {
        Vec::from([msr.to_string(), name(msr.0 as u32), value.to_string()])
    };
    table.rows = set.map(row).collect();
    table
}

fn leaf_table(cpuid: &CpuidLeaves) -> Table {
    let title = match cpuid.cpu {
        0 => "CPUID of the boot processor".to_string(),
        cpu => format!("CPUID of processor {cpu}, where it is not as on the boot processor"),
    };
    let heads = [
        ("leaf", false),
        ("sub-leaf", false),
        ("EAX", false),
        ("EBX", false),
        ("ECX", false),
        ("EDX", false),
    ];
    let mut table = Table::new(title, &heads);
    table.long = true;
    let row = |&[leaf, subleaf, a, b, c, d]: &[u32; 6]| {
        let words = [a, b, c, d].map(|word| format!("{word:08x}"));
        [format!("{leaf:#x}"), format!("{subleaf:#x}")].into_iter().chain(words).collect()
    };
    table.rows = cpuid.answers.iter().map(row).collect();
    table
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::collect::Numbered;

    /// The least of a bring-up.
    pub const LINES: [&str; 5] = [
        r#"{"type":"cpuid","item":0,"cpu":0,"answers":[[0,0,13,1970169159,1818588270,1231384169],[1,0,329443,0,0,0]]}"#,
        r#"{"type":"msrs","item":0,"cpu":0,"found":true,"values":[["0x186","0x4300c0"],["0xc1","0x0"]],"absent":["0x38e"]}"#,
        r#"{"type":"acpi","item":0,"tables":[{"signature":"FACP","address":"0x1000","bytes":244,"revision":3,"oem":"BOCHS BXPC",
           "facts":"power management timer of 24 bits at port 0x608; profile 1"}]}"#,
        r#"{"type":"measure","item":0,"name":"skid.interrupt","unit":"instructions","runs":64,"min":12,"median":14,"max":31,
           "bound":62}"#,
        r#"{"type":"measure","item":0,"name":"skew.tsc","cpu":1,"unit":"TSC ticks","runs":8,"min":-4,"median":-3,"max":2}"#,
    ];

    pub fn report() -> Report {
        let read = |line: &&str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        let records = (0..).zip(LINES.iter().map(read));
        let records = records.map(|(seq, record)| Numbered { seq, record }).collect();
        Report { records, ..Report::default() }
    }

    #[test]
    fn x10_every_record_of_a_bring_up_has_its_rows() {
        let tables = tables(&report());
        let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Measured on this machine",
                "Registers of processor 0 as the machine's firmware left them (1 more hold 0, 1 raise an exception)",
                "ACPI tables",
                "CPUID of the boot processor",
            ]
        );
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.len() == table.heads.len()), "{table:?}");
        }
        assert_eq!(
            tables[0].rows[0],
            ["skid.interrupt", "instructions", "64", "12", "14", "31", "", "62"]
        );
        assert_eq!(tables[0].rows[1][0], "skew.tsc, processor 1");
        assert_eq!(tables[1].rows, [["0x186", "IA32_PERFEVTSEL0", "0x4300c0"]]);
        assert_eq!(tables[3].rows[0][2..4], ["0000000d", "756e6547"]);
        assert_eq!(super::tables(&Report::default()), []);
    }
}
