//! The attributes that a request can have, and which of them a processor offers.

use crate::cpu::Vendor;
use crate::encode::{Refusal, absent_field};
use crate::msr;
use crate::processor::Processor;
use crate::register::EventSelect;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// How it is written: as a modifier after a colon, or as a term between slashes.
    pub word: &'static str,
    /// What it does.
    pub meaning: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Always,
    /// Bits of Intel's event select register.
    Field(u64),
    Precise(u8),
    /// What records state of retirement.
    Retirement,
    /// Addresses, any of which will do.
    Msr(&'static [u32]),
}

const fn always(word: &'static str, meaning: &'static str) -> Attribute {
    Attribute { word, meaning, kind: Kind::Always }
}

const fn field(word: &'static str, meaning: &'static str, bits: u64) -> Attribute {
    Attribute { word, meaning, kind: Kind::Field(bits) }
}

const fn precise(word: &'static str, meaning: &'static str, level: u8) -> Attribute {
    Attribute { word, meaning, kind: Kind::Precise(level) }
}

const fn with_msr(
    word: &'static str,
    meaning: &'static str,
    addresses: &'static [u32],
) -> Attribute {
    Attribute { word, meaning, kind: Kind::Msr(addresses) }
}

/// All attributes.
pub const ALL: [Attribute; 21] = [
    always("u", "count at CPL above 0"),
    always("k", "count at CPL 0"),
    always("e", "count rising edges"),
    always("i", "fewer than the counter mask instead of at least"),
    always("c=N", "count cycles with at least N occurrences, N up to 255"),
    always("umask=N", "a unit mask in place of the event's own"),
    always("counter=N", "on this general-purpose counter only"),
    always("alone", "with no other general-purpose counter"),
    field("any", "count for both hyper-threads", 1 << 21),
    field("eq", "exactly as many as the counter mask", 1 << 36),
    field("pc", "pin control", 1 << 19),
    field("intx", "only inside transactions", 1 << 32),
    field("intxcp", "without the counts of aborted transactions", 1 << 33),
    precise("p", "precise, with constant skid", 1),
    precise("pp", "precise, without skid", 2),
    precise("ppp", "precise, with precise distribution", 3),
    Attribute {
        word: "retire_latency=N",
        meaning: "the mean retire latency of its records, one of each N events",
        kind: Kind::Retirement,
    },
    with_msr(
        "offcore_rsp=N",
        "which offcore responses",
        &[msr::OFFCORE_RSP_0, msr::OFFCORE_RSP_1, 0x3e0, 0x3e1, 0x3e2, 0x3e3],
    ),
    with_msr("snoop_rsp=N", "which snoop responses", &[msr::SNOOP_RSP_0, msr::SNOOP_RSP_1]),
    with_msr("ldlat=N", "loads that take at least N cycles", &[msr::LOAD_LATENCY]),
    with_msr("frontend=N", "which front-end conditions", &[msr::FRONTEND]),
];

/// Why there is no retire latency.
pub(crate) const NO_RETIREMENT: &str = "the processor's PEBS records do not state it (IA32_PERF_CAPABILITIES[17], from Meteor Lake on)";

impl Attribute {
    /// Whether a processor offers it.
    ///
    /// # Errors
    /// The reason why not.
    pub fn on(&self, processor: &Processor) -> Result<(), &'static str> {
        let there = |there, why| if there { Ok(()) } else { Err(why) };
        match self.kind {
            Kind::Always => Ok(()),
            Kind::Field(bits) => {
                let select = EventSelect::from_bits(Vendor::Intel, bits).unwrap_or_default();
                match absent_field(&select, processor) {
                    Some(Refusal::Absent { why, .. }) => Err(why),
                    _ => Ok(()),
                }
            }
            Kind::Precise(level) => match processor.pebs {
                _ if processor.vendor == Vendor::Amd => {
                    Err("AMD has instruction-based sampling instead")
                }
                None if processor.described => {
                    Err("no event of its table can be counted with PEBS")
                }
                None => Err("the processor has no PEBS with records of formats 0 to 6"),
                Some(pebs) if level == 2 => there(pebs.format >= 2, "PEBS records are too old"),
                Some(pebs) if level == 3 => there(
                    pebs.distribution_gp | u64::from(pebs.distribution_fixed) != 0,
                    "no counter has precise distribution",
                ),
                Some(_) => Ok(()),
            },
            Kind::Retirement => {
                there(processor.pebs.is_some_and(|pebs| pebs.states_retirement), NO_RETIREMENT)
            }
            Kind::Msr(addresses) => there(
                addresses.iter().any(|address| processor.extra_msr(*address).is_some()),
                "the processor does not have this MSR, or it is not known to",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::Pebs;

    #[test]
    fn c9_the_attributes_of_a_processor_can_be_walked() {
        let offered = |processor: &Processor| -> Vec<&str> {
            ALL.iter().filter(|a| a.on(processor).is_ok()).map(|a| a.word).collect()
        };
        let bare = Processor::intel(5, 8, 4);
        assert_eq!(
            offered(&bare),
            ["u", "k", "e", "i", "c=N", "umask=N", "counter=N", "alone", "pc"]
        );
        let amd = Processor::amd(true, true);
        assert_eq!(offered(&amd), ["u", "k", "e", "i", "c=N", "umask=N", "counter=N", "alone"]);
        let any = ALL.iter().find(|a| a.word == "any").unwrap();
        assert!(any.on(&amd).unwrap_err().contains("one hyper-thread"));
        let extra = |address| msr::ExtraMsr { address, valid_bits: !0 };
        let full = Processor {
            tsx: true,
            any_thread: true,
            pebs: Some(Pebs {
                gp_counters: 1,
                fixed_counters: 0,
                format: 4,
                distribution_gp: 1,
                distribution_fixed: 0,
                states_retirement: true,
            }),
            extra_msrs: [0x1a6, 0x1328, 0x3f6, 0x3f7].map(extra).into(),
            ..Processor::intel(6, 8, 4)
        };
        assert_eq!(offered(&full).len(), ALL.len());
    }

    #[test]
    fn c8_every_attribute_that_is_listed_is_understood() {
        for attribute in ALL {
            let text = alloc::format!("r1c0:{}", attribute.word.replace('N', "1"));
            assert!(crate::parse::parse_event(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn c9_precision_is_offered_up_to_what_the_processors_records_have() {
        let offered = |processor: &Processor| -> Vec<bool> {
            let word = |word| ALL.iter().find(|one| one.word == word).unwrap();
            ["p", "pp", "ppp"].map(|one| word(one).on(processor).is_ok()).to_vec()
        };
        let with = |format, distribution_gp, distribution_fixed| {
            let pebs = Pebs {
                gp_counters: 1,
                fixed_counters: 0,
                format,
                distribution_gp,
                distribution_fixed,
                states_retirement: false,
            };
            Processor { pebs: Some(pebs), ..Processor::intel(4, 4, 3) }
        };
        assert_eq!(offered(&with(0, 0, 0)), [true, false, false]);
        assert_eq!(offered(&with(1, 0, 0)), [true, false, false]);
        assert_eq!(offered(&with(2, 0, 0)), [true, true, false]);
        assert_eq!(offered(&with(3, 2, 0)), [true, true, true]);
        assert_eq!(offered(&with(4, 0, 1)), [true, true, true]);
        assert_eq!(offered(&with(4, 1, 1)), [true, true, true]);
        let why = |processor: &Processor| {
            ALL.iter().find(|one| one.word == "p").unwrap().on(processor).unwrap_err()
        };
        let none = Processor::intel(4, 4, 3);
        assert!(why(&none).contains("no PEBS with records"));
        assert!(why(&Processor { described: true, ..none }).contains("no event of its table"));
        let amd = Processor { described: true, ..Processor::amd(true, true) };
        assert!(why(&amd).contains("instruction-based sampling"));
        // Whatever it says of PEBS.
        assert!(
            why(&Processor { vendor: Vendor::Amd, ..with(3, 2, 0) }).contains("instruction-based")
        );
    }

    /// SDM vol. 4, IA32_PERFEVTSEL0.
    #[test]
    fn attributes_of_one_bit_have_the_manuals() {
        let bits = |a: &Attribute| if let Kind::Field(bits) = a.kind { Some(bits) } else { None };
        let bits: Vec<u64> = ALL.iter().filter_map(bits).collect();
        assert_eq!(bits, [0x20_0000, 0x10_0000_0000, 0x8_0000, 0x1_0000_0000, 0x2_0000_0000]);
    }
}
