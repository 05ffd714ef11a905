//! A formula of any text, and its value for any counts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::metrics::formula::Formula;

fuzz_target!(|input: (&str, Vec<f64>)| {
    let (text, numbers) = input;
    if let Ok(formula) = Formula::parse(text) {
        let count = formula.names().len();
        let mut values: Vec<Option<f64>> = numbers.into_iter().map(Some).take(count).collect();
        values.resize(count, None);
        let _ = formula.value(&values);
        assert!(formula.needed(|_| None).len() <= count);
    }
});
