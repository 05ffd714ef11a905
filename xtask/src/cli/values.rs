//! Values with a grammar of their own.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Seconds, more than 0 and at most a day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeout(pub f64);

impl Timeout {
    /// As a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

impl Default for Timeout {
    fn default() -> Self {
        Self(60.0)
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const DAY: f64 = 86_400.0;
        let seconds: f64 = text
            .parse()
            .map_err(|_| "it is not a number of seconds".to_string())?;
        if seconds > 0.0 && seconds <= DAY {
            return Ok(Self(seconds));
        }
        Err(format!("it must be more than 0 and at most {DAY} seconds"))
    }
}

/// QEMU's `-icount shift`, or none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Icount(pub Option<u8>);

impl Default for Icount {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl fmt::Display for Icount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(shift) => shift.fmt(f),
            None => f.write_str("off"),
        }
    }
}

impl FromStr for Icount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// QEMU's own bound (`MAX_ICOUNT_SHIFT`).
        const MAX_SHIFT: u8 = 10;
        match text.parse() {
            _ if text == "off" => Ok(Self(None)),
            Ok(shift @ 0..=MAX_SHIFT) => Ok(Self(Some(shift))),
            _ => Err(format!("it must be 0 to {MAX_SHIFT}, or `off`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bounds_hold() {
        for bad in ["0", "-1", "nan", "inf", "86401", "x", ""] {
            assert!(bad.parse::<Timeout>().is_err(), "{bad}");
        }
        assert_eq!("0.5".parse(), Ok(Timeout(0.5)));
        for bad in ["11", "-1", "on", ""] {
            assert!(bad.parse::<Icount>().is_err(), "{bad}");
        }
        assert_eq!("off".parse(), Ok(Icount(None)));
        assert_eq!("10".parse(), Ok(Icount(Some(10))));
    }
}
