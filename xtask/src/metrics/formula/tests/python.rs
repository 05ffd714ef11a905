//! Every formula against Python, in whose syntax they are written.

use super::super::*;
use crate::metrics::table;
use std::collections::{BTreeSet, HashMap};
use std::process::{Command, Stdio};

/// Rows of counts.
const ROWS: usize = 1000;

/// Evaluates each line of the first file, whose names are the columns in front of it, on each row of numbers of the second.
/// Eight bytes for each: the value, or a NaN with a number of its own for a division by zero.
const PROGRAM: &str = r##"
import json, re, struct, sys

ZERO = struct.pack("<Q", 0x7ff8_0000_0000_d1f0)
lines = [json.loads(line) for line in open(sys.argv[1])]
numbers = open(sys.argv[2], "rb").read()
count = int(sys.argv[3])
columns = len(numbers) // 8 // count
rows = [struct.unpack_from("<%dd" % columns, numbers, 8 * columns * row) for row in range(count)]
out = open(sys.argv[4], "wb")
for line in lines:
    text = line["text"]
    names = {}
    for number, name in enumerate(line["names"]):
        names[name] = "v[%d]" % number
    # Names in full first: they have signs within them.
    for name in sorted(names, key=len, reverse=True):
        if "." in name or "%" in name:
            text = text.replace(name, names[name])
    text = text.replace("[0]", "") if "v[" not in text else text
    text = text.replace("> =", ">=").replace("#NA", "nan")
    text = re.sub(r"&&?", " and ", text)
    text = re.sub(r"\|\|?", " or ", text)
    text = re.sub(r"(?<![\w.\]])([A-Za-z_]\w*)", lambda m: names.get(m.group(1), m.group(1)), text)
    code = compile(text.strip(), text, "eval")
    for row in rows:
        try:
            value = eval(code, {"v": row, "max": max, "min": min, "nan": float("nan")})
            out.write(struct.pack("<d", float(value)))
        except ZeroDivisionError:
            out.write(ZERO)
out.close()
"##;
/// What stands for a division by zero.
const ZERO: u64 = 0x7ff8_0000_0000_d1f0;

/// Numbers such as counts are: of any size, some of them 0.
fn numbers(columns: usize) -> Vec<f64> {
    // xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2014.
    let mut state = 0x5eed_0f0f_1234_5678_u64;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let one = |_| {
        let (kind, bits, value) = (next() % 16, next() % 50, next());
        match kind {
            0 => 0.0,
            // What a share of a hundred may be, as thresholds take it.
            1..=5 => (value % 10_000) as f64 / 100.0,
            _ => (value >> (14 + bits % 49)) as f64,
        }
    };
    (0..ROWS * columns).map(one).collect()
}

#[test]
fn s3_every_formula_has_the_value_that_python_gives_it() {
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: s3_every_formula_has_the_value_that_python_gives_it needs python3");
        return;
    }
    // Many tables have the same ones.
    let (mut texts, mut all) = (BTreeSet::new(), 0);
    for metric in table::names().iter().flat_map(|name| table::table(name).metrics) {
        all += 1;
        texts.insert(metric.formula);
        texts.extend(metric.threshold.map(|threshold| threshold.formula));
    }
    assert!(all > 4714 && texts.len() > 700, "{all} metrics, {} formulas", texts.len());
    let formulas: Vec<(String, Formula)> =
        texts.into_iter().map(|text| (text.clone(), Formula::parse(&text).unwrap())).collect();
    let columns = formulas.iter().map(|(_, formula)| formula.names().len()).max().unwrap();
    let numbers = numbers(columns);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let line = |(text, formula): &(String, Formula)| {
        serde_json::json!({"text": text, "names": formula.names()}).to_string() + "\n"
    };
    std::fs::write(path("formulas"), formulas.iter().map(line).collect::<String>()).unwrap();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(path("numbers"), bytes).unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).args([path("formulas"), path("numbers")]);
    let output = python.arg(ROWS.to_string()).arg(path("values")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let values = std::fs::read(path("values")).unwrap();
    assert_eq!(values.len(), 8 * ROWS * formulas.len());
    let mut values = values.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut outcomes: HashMap<&str, usize> = HashMap::new();
    for (text, formula) in &formulas {
        for row in numbers.chunks(columns) {
            let given: Vec<Option<f64>> = row.iter().copied().map(Some).collect();
            let theirs = values.next().unwrap();
            match formula.value(&given) {
                Ok(ours) => {
                    assert_eq!(
                        ours.to_bits(),
                        theirs,
                        "{text}: {ours}, {}",
                        f64::from_bits(theirs)
                    );
                    *outcomes.entry("value").or_default() += 1;
                }
                Err(NoValue::DivisionByZero(_)) => {
                    assert_eq!(theirs, ZERO, "{text}: {}", f64::from_bits(theirs));
                    *outcomes.entry("division by zero").or_default() += 1;
                }
                Err(missing) => panic!("{text}: {missing}"),
            }
        }
    }
    // Both kinds are there.
    assert!(outcomes["value"] > 300_000 && outcomes["division by zero"] > 10_000, "{outcomes:?}");
}
