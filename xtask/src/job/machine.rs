//! `machine = { … }` of a job file, and `--machine KEY=VALUE`.

use super::schema::RingText;
use protocol::job::control::{
    Caches, Control, DEFAULT_SMI_REPEATS, DEFAULT_TIME_LIMIT_MS, Interrupts, MemoryType, PageSize,
    ReadMsr, Ring,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::str::FromStr;

/// The state of the machine in which code is measured.
// What is absent is taken from the job's defaults, then from [`Control`]'s.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Machine")]
pub struct MachineOptions {
    /// Milliseconds of unhalted cycles after which a run is ended; 0: none. Default: 10000.
    time_limit: Option<u32>,
    /// How interrupts are kept out. Default: cli.
    interrupts: Option<Interrupts>,
    /// Off: prefetchers do not work. On only takes back an off of the defaults. Default: as they are.
    prefetchers: Option<Switch>,
    /// Off: the processor may not exceed its nominal frequency. On only takes back an off of the defaults. Default: as it is.
    turbo: Option<Switch>,
    /// The core's frequency in MHz. Default: as it is.
    frequency: Option<u32>,
    /// State of the caches before each run. Default: warm.
    caches: Option<Temperature>,
    /// How caches are made cold. Default: wbinvd.
    cold_by: Option<ColdBy>,
    /// State of the TLB before each run. Default: kept.
    tlb: Option<Tlb>,
    /// Size of the pages of the five memory areas. Default: 4k.
    page_size: Option<PageSize>,
    /// Type of the five memory areas. Default: wb.
    memory_type: Option<MemoryType>,
    /// 0 or 3. Default: 0.
    #[schemars(with = "Option<RingText>")]
    ring: Option<u8>,
    /// How often a run with a system management interrupt is repeated. Default: 3.
    smi_repeats: Option<u32>,
    /// MSRs that are read before and after, by name or number: the difference is a figure.
    #[schemars(with = "Option<Vec<String>>")]
    msrs: Option<Vec<MsrName>>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Switch {
    On,
    Off,
}

impl Switch {
    /// `own` over `base`. The firmware switches off and back, never on: what is on is as it was without the off that it takes back.
    fn over(own: Option<Self>, base: Option<Self>) -> Option<Self> {
        match (own, base) {
            (Some(Self::On), Some(Self::Off)) => None,
            (own, base) => own.or(base),
        }
    }

    /// Whether the firmware is to switch it off.
    fn is_off(switch: Option<Self>, key: &str) -> Result<bool, String> {
        match switch {
            Some(Self::On) => Err(format!(
                "machine.{key} is on, which only takes back an off of [defaults], and there is none: the firmware switches \
                 nothing on"
            )),
            other => Ok(other == Some(Self::Off)),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Temperature {
    Warm,
    Cold,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum ColdBy {
    Wbinvd,
    Clflush,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Tlb {
    Kept,
    Flushed,
}

/// A register by number, or by one of [`NAMES`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
struct MsrName {
    text: String,
    number: u32,
}

/// Registers that count, by short names. Intel SDM vol. 4, table 2-2 (energy: table 2-39); AMD PPR, MSRs 0000_00E7,
/// 0000_00E8, C000_00E9, C001_029A and C001_029B.
const NAMES: [(&str, u32); 10] = [
    ("tsc", 0x10),
    ("smi-count", 0x34),
    ("mperf", 0xe7),
    ("aperf", 0xe8),
    ("package-energy", 0x611),
    ("dram-energy", 0x619),
    ("core-energy", 0x639),
    ("amd-instructions", 0xc000_00e9),
    ("amd-core-energy", 0xc001_029a),
    ("amd-package-energy", 0xc001_029b),
];

impl TryFrom<String> for MsrName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|&(_, number)| number);
        let number = match text.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u32::from_str_radix(digits, 16).ok(),
            _ => named,
        };
        let Some(number) = number else {
            let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            return Err(format!(
                "`{text}` is no register: give a number like 0x34, or one of {known}"
            ));
        };
        Ok(Self { text, number })
    }
}

impl FromStr for MachineOptions {
    type Err = String;

    /// `KEY=VALUE`, the value as in a job file, quotes around a word optional; `msrs` takes a list with commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("it must be KEY=VALUE")?;
        let (key, value) = (key.trim(), value.trim());
        let quoted = |word: &str| toml::Value::from(word.trim()).to_string();
        let value = match (key, value.parse::<u32>()) {
            ("msrs", _) => {
                format!("[{}]", value.split(',').map(quoted).collect::<Vec<_>>().join(", "))
            }
            (_, Ok(number)) => number.to_string(),
            _ => quoted(value.trim_matches('"')),
        };
        let mut table = toml::Table::new();
        let parsed: toml::Table = toml::from_str(&format!("value = {value}"))
            .map_err(|error| error.message().to_string())?;
        table.insert(key.to_string(), parsed["value"].clone());
        table.try_into().map_err(|error: toml::de::Error| error.message().to_string())
    }
}

impl MachineOptions {
    /// These, and from `base` what is absent here.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        let (own, base) = (self.clone(), base.clone());
        Self {
            time_limit: own.time_limit.or(base.time_limit),
            interrupts: own.interrupts.or(base.interrupts),
            prefetchers: Switch::over(own.prefetchers, base.prefetchers),
            turbo: Switch::over(own.turbo, base.turbo),
            frequency: own.frequency.or(base.frequency),
            caches: own.caches.or(base.caches),
            cold_by: own.cold_by.or(base.cold_by),
            tlb: own.tlb.or(base.tlb),
            page_size: own.page_size.or(base.page_size),
            memory_type: own.memory_type.or(base.memory_type),
            ring: own.ring.or(base.ring),
            smi_repeats: own.smi_repeats.or(base.smi_repeats),
            msrs: own.msrs.or(base.msrs),
        }
    }

    /// Whether the code has no rights to the machine's state.
    pub(crate) fn is_ring_3(&self) -> bool {
        self.ring == Some(3)
    }

    /// Names of the registers that are read around each run.
    pub(super) fn msr_names(&self) -> impl Iterator<Item = String> {
        self.msrs.iter().flatten().map(|register| register.text.clone())
    }

    /// What the firmware is asked for.
    ///
    /// # Errors
    /// Options that contradict each other, or a ring that nothing runs in.
    pub fn decide(&self) -> Result<Control<'static>, String> {
        let is_cold = self.caches == Some(Temperature::Cold);
        let caches = match (is_cold, self.cold_by) {
            (true, Some(ColdBy::Clflush)) => Caches::ColdByClflush,
            (true, _) => Caches::ColdByWbinvd,
            (false, None) => Caches::Warm,
            (false, Some(_)) => return Err("machine.cold-by needs caches = \"cold\"".to_string()),
        };
        let ring = match self.ring {
            None | Some(0) => Ring::Kernel,
            Some(3) => Ring::User,
            Some(other) => return Err(format!("machine.ring is {other}; it must be 0 or 3")),
        };
        let msrs = self.msrs.iter().flatten();
        Ok(Control {
            time_limit_ms: self.time_limit.unwrap_or(DEFAULT_TIME_LIMIT_MS),
            interrupts: self.interrupts.unwrap_or_default(),
            prefetchers_off: Switch::is_off(self.prefetchers, "prefetchers")?,
            turbo_off: Switch::is_off(self.turbo, "turbo")?,
            frequency_mhz: self.frequency.unwrap_or(0),
            caches,
            flush_tlb: self.tlb == Some(Tlb::Flushed),
            page_size: self.page_size.unwrap_or_default(),
            memory_type: self.memory_type.unwrap_or_default(),
            ring,
            smi_repeats: self.smi_repeats.unwrap_or(DEFAULT_SMI_REPEATS),
            msrs: msrs
                .map(|msr| ReadMsr { name: Cow::Owned(msr.text.clone()), number: msr.number })
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(pairs: &[&str]) -> Result<Control<'static>, String> {
        let all = pairs.iter().try_fold(MachineOptions::default(), |base, pair| {
            pair.parse::<MachineOptions>().map(|one| one.over(&base))
        })?;
        all.decide()
    }

    #[test]
    fn n5_each_option_is_taken_and_the_later_one_wins() {
        assert_eq!(decided(&[]), Ok(Control::default()));
        let control = decided(&[
            "ring=0",
            "ring=3",
            "caches=cold",
            "cold-by=clflush",
            "tlb=flushed",
            "page-size=2m",
            "memory-type=uc",
            "time-limit=50",
            "interrupts=apic",
            "prefetchers=off",
            "turbo=off",
            "frequency=2000",
            "smi-repeats=7",
            "msrs=aperf, 0x34",
        ])
        .unwrap();
        let msr = |name: &'static str, number| ReadMsr { name: Cow::Borrowed(name), number };
        let expected = Control {
            time_limit_ms: 50,
            interrupts: Interrupts::Apic,
            prefetchers_off: true,
            turbo_off: true,
            frequency_mhz: 2000,
            caches: Caches::ColdByClflush,
            flush_tlb: true,
            page_size: PageSize::Large,
            memory_type: MemoryType::Uncacheable,
            ring: Ring::User,
            smi_repeats: 7,
            msrs: vec![msr("aperf", 0xe8), msr("0x34", 0x34)],
        };
        assert_eq!(control, expected);
    }

    /// The firmware switches nothing on: `on` is the absence of an `off` that there was.
    #[test]
    fn n5_on_takes_back_an_off() {
        for pairs in [["prefetchers=off", "prefetchers=on"], ["turbo=off", "turbo=on"]] {
            assert_eq!(decided(&pairs), Ok(Control::default()), "{pairs:?}");
        }
        let last = decided(&["prefetchers=off", "prefetchers=on", "prefetchers=off"]).unwrap();
        assert!(last.prefetchers_off && !last.turbo_off);
        assert!(decided(&["turbo=on", "turbo=off"]).unwrap().turbo_off);
    }

    #[test]
    fn c7_what_cannot_be_is_refused_by_name() {
        for (pairs, named) in [
            (&["ring=1"][..], "ring is 1"),
            (&["prefetchers=on"], "machine.prefetchers is on"),
            (&["turbo=on"], "machine.turbo is on"),
            (&["turbo=off", "prefetchers=on"], "machine.prefetchers is on"),
            (&["cold-by=clflush"], "cold-by"),
            (&["caches=tepid"], "tepid"),
            (&["warp=9"], "warp"),
            (&["msrs=aperv"], "aperv"),
            (&["msrs=0x1_0000_0000"], "0x1_0000_0000"),
            (&["ring"], "KEY=VALUE"),
        ] {
            let error = decided(pairs).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
