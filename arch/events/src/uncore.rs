//! Events of the uncore, which a package has once for all its cores: `uncore_arb/event=0x81,umask=0x1/`, as perf has them. They are given
//! by their codes: no table of events has them.

use crate::request::{Attributes, Base, Request};
use thiserror::Error;

/// A kind of part of the uncore that counts by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// The client's clock.
    Clock,
    /// The client's arbiter, before the memory controller.
    Arbiter,
    /// The server's caching agents: CBo or CHA, each with a slice of the last-level cache.
    Caching,
    /// The server's memory channels, or the client's memory controllers.
    Memory,
    /// The server's links to other packages: QPI or UPI.
    Link,
    /// The server's PCIe: IIO, with ports and kinds of requests in the upper bits of the unit mask.
    Io,
    /// What keeps the server's PCIe coherent: IRP.
    Coherence,
    /// Between the server's mesh and its memory: M2M.
    Mesh,
    /// The server's power control: PCU.
    Power,
}

/// Each with its name, which is that of perf's PMU.
pub const NAMES: [(Unit, &str); 11] = [
    (Unit::Clock, "uncore_clock"),
    (Unit::Arbiter, "uncore_arb"),
    (Unit::Caching, "uncore_cha"),
    (Unit::Memory, "uncore_imc"),
    (Unit::Link, "uncore_upi"),
    (Unit::Io, "uncore_iio"),
    (Unit::Coherence, "uncore_irp"),
    (Unit::Mesh, "uncore_m2m"),
    (Unit::Power, "uncore_pcu"),
    (Unit::Caching, "uncore_cbox"),
    (Unit::Link, "uncore_qpi"),
];

impl Unit {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

/// What perf's names of the uncore begin with.
const PREFIX: &str = "uncore_";
/// The end of the name that means the first of several alike, and not their sum.
const FIRST: &str = "_0";

/// An event, in the bits of the registers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// Where it is counted.
    pub unit: Unit,
    /// Event select: bits 7:0 event, 15:8 and from 32 on unit mask, 18 edge, 23 invert, 31:24 threshold.
    pub select: u64,
    /// The filter: the first register's value, from bit 32 on the second's.
    pub filter: u64,
    /// Only in the first of several units, not in all of them.
    pub first: bool,
}

/// Why an event of the uncore means nothing.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Refused<'a> {
    /// No such part, or none that is counted.
    #[error(
        "{0}: counted are uncore_clock, uncore_arb, uncore_cha (uncore_cbox), uncore_imc, uncore_upi (uncore_qpi), uncore_iio, uncore_irp, uncore_m2m and uncore_pcu"
    )]
    Unit(&'a str),
    /// It has no code.
    #[error("an event of the uncore is given by its code: event=0x81,umask=0x1")]
    Code,
    /// A value that does not fit.
    #[error("{field} {value:#x} is more than {most:#x}")]
    Value {
        /// Of what.
        field: &'static str,
        /// The value.
        value: u64,
        /// The largest.
        most: u64,
    },
    /// Rings, precision and others are of cores.
    #[error(
        "events of the uncore have umask, cmask, edge, inv, config1 and name, and nothing of cores"
    )]
    OfCores,
}

/// What of the uncore a request is for, if it is for that.
#[must_use]
pub fn of(request: &Request) -> Option<Result<Event, Refused<'_>>> {
    let name = &*request.pmu.as_ref().filter(|pmu| pmu.name.starts_with(PREFIX))?.name;
    Some(event(name, request))
}

fn event<'a>(name: &'a str, request: &Request) -> Result<Event, Refused<'a>> {
    let kind = name.strip_suffix(FIRST).unwrap_or(name);
    let known = NAMES.iter().find(|(_, known)| *known == kind);
    let &(unit, _) = known.ok_or(Refused::Unit(name))?;
    let Base::Code { event, umask } = request.base else { return Err(Refused::Code) };
    let Attributes { umask: other, cmask, edge, invert, config1, .. } = request.attributes;
    let label = request.attributes.label.clone();
    let own =
        Attributes { umask: other, cmask, edge, invert, config1, label, ..Attributes::default() };
    if request.attributes != own {
        return Err(Refused::OfCores);
    }
    let within = |field, value: u64, most| match value <= most {
        true => Ok(value),
        false => Err(Refused::Value { field, value, most }),
    };
    let event = within("event", event, 0xff)?;
    let umask = within("umask", other.unwrap_or(umask), u32::MAX.into())?;
    let cmask = within("cmask", cmask.unwrap_or(0), 0xff)?;
    let flag = |flag: Option<bool>, bit: u32| u64::from(flag.unwrap_or(false)) << bit;
    let select = event
        | (umask & 0xff) << 8
        | flag(edge, 18)
        | flag(invert, 23)
        | cmask << 24
        | umask >> 8 << 32;
    Ok(Event { unit, select, filter: config1.unwrap_or(0), first: name != kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_event;
    use alloc::string::ToString;

    fn read(text: &str) -> Option<Result<Event, alloc::string::String>> {
        let request = parse_event(text).unwrap();
        of(&request).map(|found| found.map_err(|why| why.to_string()))
    }

    #[test]
    fn s3_events_of_the_uncore_are_codes_in_the_bits_of_the_registers() {
        for (index, (unit, name)) in NAMES.iter().take(9).enumerate() {
            assert_eq!((*unit as usize, unit.name()), (index, *name));
        }
        let event = |unit, select| Event { unit, select, filter: 0, first: false };
        let of = |text| read(text).unwrap().unwrap();
        let named = "uncore_arb/event=0x81,umask=0x1,name=UNC_ARB_TRK_REQUESTS.ALL/";
        assert_eq!(of(named), event(Unit::Arbiter, 0x181));
        assert_eq!(of("uncore_arb/event=0x80,umask=2,cmask=1/"), event(Unit::Arbiter, 0x100_0280));
        assert_eq!(of("uncore_clock/event=0xff/"), event(Unit::Clock, 0xff));
        let wide = of("uncore_cha/event=0x35,umask=0xc817fe01/");
        assert_eq!(wide, event(Unit::Caching, 0xc8_17fe_0000_0135));
        let all =
            of("uncore_cbox_0/event=0x35,umask=3,edge,inv,cmask=255,config1=0x1820000000000000/");
        let filter = 0x182 << 52;
        assert_eq!(all, Event { filter, first: true, ..event(Unit::Caching, 0xff84_0335) });
    }

    #[test]
    fn s3_what_is_none_of_the_uncore_or_means_nothing_there_is_told_apart() {
        for other in ["cycles", "cpu/event=0x3c/", "power/energy-pkg/"] {
            assert_eq!(read(other), None, "{other}");
        }
        for (text, why) in [
            ("uncore_mdf/event=4/", "uncore_mdf: counted are uncore_clock"),
            ("uncore_arb_1/event=4/", "uncore_arb_1: counted are"),
            ("uncore_arb/cycles/", "given by its code"),
            ("uncore_arb/event=0x181/", "event 0x181 is more than 0xff"),
            ("uncore_cha/event=1,umask=0x100000000/", "umask 0x100000000 is more than 0xffffffff"),
            ("uncore_cha/event=1,cmask=256/", "cmask 0x100 is more than 0xff"),
            ("uncore_arb/event=1/u", "nothing of cores"),
            ("uncore_arb/event=1,ldlat=4/", "nothing of cores"),
        ] {
            let refused = read(text).unwrap().unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
