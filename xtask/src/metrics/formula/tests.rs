mod python;

use super::*;
use proptest::prelude::*;

fn value(text: &str) -> Result<f64, NoValue> {
    let formula = Formula::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let of = |name: &String| match name.as_str() {
        "zero" => Some(0.0),
        "one" => Some(1.0),
        "seven" => Some(7.0),
        "metric_TMA_..Core_Bound(%)" => Some(12.5),
        _ => None,
    };
    let values: Vec<Option<f64>> = formula.names().iter().map(of).collect();
    formula.value(&values)
}

#[test]
fn s3_formulas_have_the_ranks_of_python() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("( 1 + 2 ) * 3", 9.0),
        ("8 / 4 / 2", 1.0),
        ("7 - 2 - 1", 4.0),
        ("-2 * -3", 6.0),
        ("+1e9 * .5", 5e8),
        ("1.5e-1", 0.15),
        ("max( 1, seven, 3 ) + min( 2, one )", 8.0),
        ("3 if one else 4 if zero else 5", 3.0),
        ("3 if zero else 4 if zero else 5", 5.0),
        ("1 + 1 if zero else 2 * 2", 4.0),
        ("seven > 5 & one < 2", 1.0),
        ("seven > 5 && one > 2 || one == 1", 1.0),
        ("zero > 1 | one > 1", 0.0),
        ("one != 1 or seven > = 7", 1.0),
        ("metric_TMA_..Core_Bound(%) >12 && seven[0] <= 7", 1.0),
        ("#NA if 0 > 2 else 3", 3.0),
        // What is not looked at is not missed, and nothing is divided by it.
        ("nosuch if zero else seven", 7.0),
        ("zero > 1 & 1 / zero > 1", 0.0),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
    assert!(value("max( zero * -1, 0 )").unwrap().is_sign_negative(), "of equals the first");
}

#[test]
fn s3_division_by_zero_and_missing_names_are_named() {
    let zero = value("1 / ( seven * zero )").unwrap_err().to_string();
    assert_eq!(zero, "division by zero: the value computed from seven, zero is 0");
    assert_eq!(value("1 / zero").unwrap_err().to_string(), "division by zero: zero is 0");
    assert_eq!(value("one / 0").unwrap_err().to_string(), "division by zero: a constant is 0");
    assert_eq!(value("1 + nosuch").unwrap_err().to_string(), "there is no value of nosuch");
}

#[test]
fn s3_a_decided_choice_needs_one_side() {
    let formula = Formula::parse("a / ( b / 2 ) if smt_on else ( c / d if e > 1 else f )").unwrap();
    let known = |on: f64| move |name: &str| (name == "smt_on").then_some(on);
    assert_eq!(formula.needed(known(1.0)), ["a", "b"]);
    assert_eq!(formula.needed(known(0.0)), ["c", "d", "e", "f"]);
    assert_eq!(formula.needed(|_| None).len(), 7);
}

#[test]
fn s3_what_is_no_formula_says_where() {
    for (text, at, part) in [
        ("", 0, "it ends; a number, a name or `(` is expected"),
        ("1 +", 3, "it ends"),
        ("( 1", 3, "`)`"),
        ("1 2", 2, "an operator or the end"),
        ("1 ** 2", 2, "\"*\" is not understood"),
        ("a // b", 2, "\"/\" is not understood"),
        ("4x", 0, "\"4\" is not understood"),
        ("a $ b", 2, "\"$\""),
        ("max( )", 5, "a number"),
        ("1 if 2", 6, "`else`"),
        ("1 < 2 < 3", 6, "a third value"),
        ("ü", 0, "\"ü\""),
    ] {
        let error = Formula::parse(text).unwrap_err();
        assert!(error.at == at && error.what.contains(part), "{text}: {error}");
    }
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Formula::parse(&deep).unwrap_err().what.contains("nested more than 100 deep"));
    assert!(Formula::parse(&"-".repeat(5000)).unwrap_err().what.contains("nested"));
    assert!(Formula::parse(&"1+".repeat(20_000)).unwrap_err().what.contains("words"));
}

/// A formula's text, and what it comes to by Rust's own arithmetic.
fn sums() -> impl Strategy<Value = (String, f64)> {
    let leaf = (0_u32..1000).prop_map(|number| (number.to_string(), f64::from(number)));
    leaf.prop_recursive(5, 64, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| (format!("( {} + {} )", a.0, b.0), a.1 + b.1)),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| (format!("({}-{})", a.0, b.0), a.1 - b.1)),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| (format!("{} * {}", a.0, b.0), a.1 * b.1))
                .prop_map(|(text, value)| (format!("({text})"), value)),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| {
                let value = if b.1 > 0.0 { a.1 } else { c.1 };
                (format!("( {} if {} > 0 else {} )", a.0, b.0, c.0), value)
            }),
            (inner.clone(), inner).prop_map(|(a, b)| {
                (format!("max( {}, {} )", a.0, b.0), if b.1 > a.1 { b.1 } else { a.1 })
            }),
        ]
    })
}

proptest! {
    #[test]
    fn s3_a_formula_comes_to_what_its_parts_do((text, expected) in sums()) {
        let formula = Formula::parse(&text).unwrap();
        let value = formula.value(&[]).unwrap();
        prop_assert_eq!(value.to_bits(), expected.to_bits(), "{}", text);
    }

    /// Whatever the text: it is read, or the error is at a place of it.
    #[test]
    fn s3_any_text_is_read_or_refused(text in "[ab0-9.e()+*/<>=&|,#\\[\\]% \\-]{0,60}|\\PC{0,30}") {
        match Formula::parse(&text) {
            Ok(formula) => {
                let values = vec![Some(1.0); formula.names().len()];
                let _ = formula.value(&values);
            }
            Err(error) => prop_assert!(text.is_char_boundary(error.at), "{}", error),
        }
    }
}
