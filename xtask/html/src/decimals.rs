//! Figures in few decimals, but enough to tell them apart.

/// Figures below it are shown with an exponent.
const SMALL: f64 = 1e-5;

/// So many decimals, or digits behind an exponent, tell any two figures apart: one has 17 digits at most.
const MOST: usize = 21;

/// A figure with at most `decimals` decimals, without trailing zeros. Small ones have two significant digits in any case, and an exponent
/// below 0.00001.
#[must_use]
pub fn number(value: f64, decimals: usize) -> String {
    if value != 0.0 && value.abs() < SMALL {
        return format!("{value:.*e}", decimals.saturating_sub(4).max(2));
    }
    // The second significant digit of 0.00015 is the fifth decimal.
    let least = 1.0 - value.abs().log10().floor();
    let decimals =
        if value.abs() < 1.0 && value != 0.0 { decimals.max(least as usize) } else { decimals };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// The same of figures that are compared: with as many more decimals as it takes that different ones do not look alike.
#[must_use]
pub fn apart(values: &[f64], decimals: usize) -> Vec<String> {
    let texts = |decimals| values.iter().map(|&value| number(value, decimals)).collect::<Vec<_>>();
    let differ = |texts: &Vec<String>| {
        let all = || values.iter().zip(texts);
        all().all(|(one, text)| all().all(|(other, same)| one == other || text != same))
    };
    (decimals..MOST).map(texts).find(differ).unwrap_or_else(|| texts(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_figures_have_two_digits_and_others_few_decimals() {
        let seen = [4.0, -0.25, 1.0 / 3.0, 0.0, -0.0, 1e-4, 1.26e-5, 1.5e-6, -1e-9, 99.9996];
        let texts = seen.map(|value| number(value, 3));
        let expected =
            ["4", "-0.25", "0.333", "0", "0", "0.0001", "0.000013", "1.50e-6", "-1.00e-9", "100"];
        assert_eq!(texts, expected);
        assert_eq!(number(1200.0, 0), "1200");
    }

    #[test]
    fn figures_that_differ_do_not_look_alike() {
        assert_eq!(apart(&[4.0, 4.0001], 3), ["4", "4.0001"]);
        assert_eq!(apart(&[4.0, 4.0, 4.5], 3), ["4", "4", "4.5"]);
        assert_eq!(apart(&[1.5e-6, 1.5001e-6], 3), ["1.5000e-6", "1.5001e-6"]);
        assert!(apart(&[], 3).is_empty());
    }

    proptest! {
        #[test]
        fn no_two_figures_look_alike(one in any::<f64>(), by in 1u64..1000) {
            let other = f64::from_bits(one.to_bits().wrapping_add(by));
            prop_assume!(one.is_finite() && other.is_finite() && one != other);
            let texts = apart(&[one, other], 3);
            prop_assert_ne!(&texts[0], &texts[1]);
        }
    }
}
