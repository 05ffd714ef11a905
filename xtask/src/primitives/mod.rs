//! What reports and other results are written with: figures, tables, rows of CSV, test points, plots of characters, and colours.
//! Nothing here knows what is shown.

pub(crate) mod csv;
pub(crate) mod plot;
pub(crate) mod point;
pub mod style;
pub mod table;

/// A figure with at most three decimals, without trailing zeros.
#[must_use]
pub fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// How many of a thing there are: `1 item`, `2 items`.
#[must_use]
pub fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Joules with the prefix that suits them: `15.26 nJ`.
#[must_use]
pub fn joules(value: f64) -> String {
    let (unit, scale) = unit_of_joules([value]);
    format!("{} {unit}", number(value * scale))
}

/// The unit that suits the largest of these values in joules, and how many of it are a joule.
#[must_use]
pub fn unit_of_joules(values: impl IntoIterator<Item = f64>) -> (&'static str, f64) {
    const PREFIXES: [(&str, f64); 5] =
        [("pJ", 1e12), ("nJ", 1e9), ("µJ", 1e6), ("mJ", 1e3), ("J", 1.0)];
    let largest = values.into_iter().map(f64::abs).fold(0.0, f64::max);
    let fits = |(_, scale): &&(&str, f64)| largest * scale < 1000.0;
    *PREFIXES.iter().find(fits).unwrap_or(&PREFIXES[4])
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_thing_is_no_plural() {
        let items = [0, 1, 2].map(|count| super::counted(count, "item"));
        assert_eq!(items, ["0 items", "1 item", "2 items"]);
    }

    #[test]
    fn s4_joules_have_the_prefix_that_suits_them() {
        for (value, text) in [
            (0.0, "0 pJ"),
            (1.526e-8, "15.26 nJ"),
            (-0.0125, "-12.5 mJ"),
            (9.999e-4, "999.9 µJ"),
            (4096.0, "4096 J"),
            // A thousand is one of the next.
            (1.0, "1 J"),
            (999e-12, "999 pJ"),
        ] {
            assert_eq!(crate::primitives::joules(value), text);
        }
        // Values beside each other have the unit of the largest.
        for (values, unit) in [([1e-10, 2e-6], "µJ"), ([-3.0, 0.0], "J"), ([0.0, f64::NAN], "pJ")]
        {
            assert_eq!(crate::primitives::unit_of_joules(values).0, unit);
        }
    }
}
