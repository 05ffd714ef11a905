//! Scales and round numbers.

use crate::{decimals, short};

/// A linear scale from values to shares of a plot's width or height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The value at one end.
    pub low: f64,
    /// The value at the other.
    pub high: f64,
}

impl Scale {
    /// A scale that has all of `values` and 0. Values that are no numbers are passed over.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low == high {
            high = low + 1.0;
        }
        Self { low, high }
    }

    /// The same from one round number to another.
    pub fn rounded(self, ticks: u32) -> Self {
        let step = step(self.high - self.low, ticks);
        Self { low: (self.low / step).floor() * step, high: (self.high / step).ceil() * step }
    }

    /// Where a value lies, from 0 to 1.
    pub fn place(self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Some round numbers on it.
    pub fn ticks(self, about: u32) -> Vec<f64> {
        let step = step(self.high - self.low, about);
        let first = (self.low / step).ceil();
        let count = ((self.high / step - first) + 1e-9).floor().clamp(0.0, 100.0) as u32;
        (0..=count).map(|number| (first + f64::from(number)) * step).collect()
    }
}

/// A step of 1, 2 or 5 times a power of ten, with which a range has about so many.
fn step(range: f64, about: u32) -> f64 {
    let rough = range / f64::from(about.max(1));
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

/// A figure with at most three decimals, its thousands apart.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_string();
    }
    grouped(&short(value, 3))
}

/// The same of a figure that is compared, however small it is.
pub fn exact(value: f64) -> String {
    if value.is_finite() { grouped(&decimals::number(value, 3)) } else { number(value) }
}

/// Figures side by side: different ones do not look alike.
pub fn apart(values: &[f64]) -> Vec<String> {
    if values.iter().all(|value| value.is_finite()) {
        return decimals::apart(values, 3).iter().map(|text| grouped(text)).collect();
    }
    values.iter().map(|&value| exact(value)).collect()
}

/// A figure's text with its thousands apart.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(a, b)| (a, Some(b)));
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("−", digits),
        None => ("", whole),
    };
    let mut out = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        // Four digits are read at a glance.
        if index > 0 && digits.len() > 4 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out += rest;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_lie_on_the_scale() {
        for (low, high, expected) in [
            (0.0, 10.0, vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
            (0.0, 1.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (0.0, 23.0, vec![0.0, 5.0, 10.0, 15.0, 20.0]),
        ] {
            let seen = Scale { low, high }.ticks(5);
            assert!(seen.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{seen:?}");
            assert_eq!(seen.len(), expected.len(), "{seen:?}");
        }
        assert_eq!(Scale { low: 0.0, high: 23.0 }.rounded(5), Scale { low: 0.0, high: 25.0 });
    }

    #[test]
    fn a_scale_has_room_for_whatever_came() {
        for values in [vec![], vec![0.0], vec![f64::NAN, f64::INFINITY], vec![5.0], vec![-3.0]] {
            let scale = Scale::of(values.iter().copied());
            assert!(scale.high > scale.low, "{values:?}");
            assert!((0.0..=1.0).contains(&scale.place(1e300)));
            assert!(scale.ticks(5).len() >= 2);
        }
    }

    #[test]
    fn figures_are_short_and_thousands_apart() {
        let seen = [1.0, 0.25, -0.0001, 1.0 / 3.0, 1234.0, 12345.0, -1_234_567.5].map(number);
        let expected =
            ["1", "0.25", "0", "0.333", "1234", "12\u{202f}345", "−1\u{202f}234\u{202f}567.5"];
        assert_eq!(seen, expected);
        assert_eq!(number(f64::NAN), "–");
    }
}
