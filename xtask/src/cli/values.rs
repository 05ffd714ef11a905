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
        let seconds: f64 = text.parse().map_err(|_| "it is not a number of seconds".to_string())?;
        if seconds > 0.0 && seconds <= DAY {
            return Ok(Self(seconds));
        }
        Err(format!("it must be more than 0 and at most {DAY} seconds"))
    }
}

/// QEMU's `-icount shift`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Icount {
    /// The shift that suits the way to boot.
    #[default]
    Auto,
    /// 2 to this power ticks of the TSC per instruction.
    Shift(u8),
    /// The TSC follows the host's clock.
    Off,
}

/// QEMU's own bound (`MAX_ICOUNT_SHIFT`).
const MAX_SHIFT: u8 = 10;
/// At shift 0 UEFI firmware takes a minute to boot, because its delays are then a billion instructions a
/// second; at 6 it takes no longer than without icount.
const UEFI_SHIFT: u8 = 6;

impl Icount {
    /// The shift, if instructions are counted.
    #[must_use]
    pub fn shift(self, boot: super::Boot) -> Option<u8> {
        match self {
            Self::Auto if boot == super::Boot::Uefi => Some(UEFI_SHIFT),
            Self::Auto => Some(0),
            Self::Shift(shift) => Some(shift),
            Self::Off => None,
        }
    }
}

impl fmt::Display for Icount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Shift(shift) => shift.fmt(f),
            Self::Off => f.write_str("off"),
        }
    }
}

impl FromStr for Icount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            ("off", _) => Ok(Self::Off),
            (_, Ok(shift @ 0..=MAX_SHIFT)) => Ok(Self::Shift(shift)),
            _ => Err(format!("it must be 0 to {MAX_SHIFT}, `auto` or `off`")),
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
        assert_eq!("off".parse(), Ok(Icount::Off));
        assert_eq!("10".parse(), Ok(Icount::Shift(10)));
        for value in [Icount::Auto, Icount::Off, Icount::Shift(3)] {
            assert_eq!(value.to_string().parse(), Ok(value));
        }
    }
}
