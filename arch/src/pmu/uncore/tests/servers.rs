//! The driver on register-level models of servers: each kind of unit in configuration space and in memory.

use super::super::*;
use super::model::{Model, at};
use crate::pci::devices::{Address, Size};
use alloc::vec;

const HASWELL: u32 = 0x0003_06f2;
const BROADWELL: u32 = 0x0004_06f1;
const SKYLAKE: u32 = 0x0005_0654;
const ICE_LAKE: u32 = 0x0006_06a6;
pub const SAPPHIRE_RAPIDS: u32 = 0x0008_06f8;

pub fn event(unit: Unit, select: u64) -> Event {
    Event { unit, select, filter: 0, first: false }
}

pub fn program(model: &mut Model, event: Event) -> Result<Running, Refusal> {
    let uncore = Uncore::find(model).unwrap();
    uncore.check(&event)?;
    let rounds = uncore.rounds(&[vec![event]]);
    Uncore::program(&rounds[0], model).map_err(|(_, refusal)| refusal)
}

/// A function with a UBOX's registers: package `number` of nodes in reverse.
fn ubox(model: &mut Model, place: Address, id: u16, [node, map]: [u16; 2], number: u32) {
    model.add(place, id, []);
    model.set(place, node, (7 - number) | 0xabc0);
    // The node of package 0 is 7, that of package 1 is 6, and so on.
    model.set(place, map, (0..8).fold(0, |map, package| map | (7 - package) << (3 * package)));
}

/// Registers of a unit, by offset: its own, four controls and four counters.
fn registers(own: u16, control: u16, apart: u16, counter: u16) -> Vec<u16> {
    let controls = (0..4 * apart / 4).map(|place| control + 4 * place);
    [own].into_iter().chain(controls).chain((0..8).map(|place| counter + 4 * place)).collect()
}

/// A kind of unit in configuration space: the processor, UBOX and its registers, the unit's ids and places, and its registers.
struct Case {
    signature: u32,
    ubox: (u16, [u16; 2]),
    unit: Unit,
    select: u64,
    places: Vec<(u16, u8, u8)>,
    own: u16,
    control: u16,
    apart: u16,
    counter: u16,
}

/// Linux, `hswep_uncore_pci_ids`, `bdx_…`, `skx_…`, `icx_…`; `SNBEP_PCI_PMON_…`, `SKX_UPI_…`, `ICX_UPI_…`, `SNR_M2M_…`.
fn cases() -> Vec<Case> {
    let case = |signature, unit, select, places, [own, control, apart, counter]: [u16; 4]| Case {
        signature,
        ubox: match signature {
            HASWELL => (0x2f1e, [0x40, 0x54]),
            BROADWELL => (0x6f1e, [0x40, 0x54]),
            SKYLAKE => (0x2014, [0xc0, 0xd4]),
            ICE_LAKE => (0x3450, [0xc0, 0xd4]),
            _ => (0x3250, [0xc0, 0xd4]),
        },
        unit,
        select,
        places,
        own,
        control,
        apart,
        counter,
    };
    let old = [0xf4, 0xd8, 4, 0xa0];
    let channels = |first: u16| {
        let ids = [0xb0, 0xb1, 0xb4, 0xb5, 0xd0, 0xd1, 0xd4, 0xd5];
        let place = |(number, id): (u8, u16)| (first + id, 20 + number / 4, number % 4);
        (0..).zip(ids).map(place).collect::<Vec<_>>()
    };
    let skylake = vec![
        (0x2042, 10, 2),
        (0x2046, 10, 6),
        (0x204a, 11, 2),
        (0x2042, 12, 2),
        (0x2046, 12, 6),
        (0x204a, 13, 2),
    ];
    vec![
        case(HASWELL, Unit::Memory, 0x304, channels(0x2f00), old),
        case(
            HASWELL,
            Unit::Link,
            0x200,
            vec![(0x2f32, 8, 2), (0x2f33, 9, 2), (0x2f3a, 10, 2)],
            old,
        ),
        case(BROADWELL, Unit::Memory, 0xc04, channels(0x6f00), old),
        case(
            BROADWELL,
            Unit::Link,
            0x200,
            vec![(0x6f32, 8, 2), (0x6f33, 9, 2), (0x6f3a, 10, 2)],
            old,
        ),
        case(SKYLAKE, Unit::Memory, 0x304, skylake, old),
        case(
            SKYLAKE,
            Unit::Link,
            0xf02,
            vec![(0x2058, 14, 0), (0x2058, 15, 0), (0x2058, 16, 0)],
            [0x378, 0x350, 8, 0x318],
        ),
        case(
            ICE_LAKE,
            Unit::Link,
            0xf02,
            vec![(0x3441, 2, 1), (0x3441, 3, 1), (0x3441, 4, 1)],
            [0x318, 0x350, 8, 0x320],
        ),
        case(
            ICE_LAKE,
            Unit::Mesh,
            0x12_0000_012e,
            vec![(0x344a, 12, 0), (0x344a, 13, 0), (0x344a, 14, 0), (0x344a, 15, 0)],
            [0x438, 0x468, 8, 0x440],
        ),
        case(
            SAPPHIRE_RAPIDS,
            Unit::Link,
            0xf03,
            vec![(0x3241, 1, 1), (0x3241, 2, 1), (0x3241, 3, 1), (0x3241, 4, 1)],
            [0x318, 0x350, 8, 0x320],
        ),
    ]
}

impl Case {
    /// A machine with so many packages, whose buses are 64 apart; the UBOX is on the last one of its package, or the first.
    fn model(&self, packages: u32) -> Model {
        let mut model = Model::new(self.signature);
        model.packages = packages;
        for package in 0..packages {
            for place in self.all(package) {
                let (id, ..) = self
                    .places
                    .iter()
                    .copied()
                    .find(|one| (one.1, one.2) == (place.device, place.function))
                    .unwrap();
                model.add(place, id, registers(self.own, self.control, self.apart, self.counter));
            }
            let bus = package as u8 * 64 + if self.signature == SKYLAKE { 0 } else { 63 };
            ubox(&mut model, at(bus, 31, 2), self.ubox.0, self.ubox.1, package);
        }
        model
    }

    /// Where the units of a package are.
    fn all(&self, package: u32) -> impl Iterator<Item = Address> + '_ {
        let bus = package as u8 * 64 + 5;
        self.places.iter().map(move |(_, device, function)| at(bus, *device, *function))
    }
}

#[test]
fn s3_units_in_configuration_space_count_and_are_as_before() {
    for case in cases() {
        let name = format!("{:#x} {:?}", case.signature, case.unit);
        let mut model = case.model(1);
        let found = model.held();
        let mut running = program(&mut model, event(case.unit, case.select)).unwrap();
        // The last of four counters, as the first ones can count more.
        let control = case.control + 3 * case.apart;
        let counter = case.counter + 24;
        for place in case.all(0) {
            let mask = if case.apart == 4 { 0xffff_ffff } else { u64::MAX };
            let [control, own] = [control, case.own].map(|offset| model.get(place, offset) & mask);
            assert_eq!(control, case.select | 1 << 22, "{name}");
            assert_eq!(own & 0xffff_ffff, 0, "{name}: neither frozen nor reset");
        }
        let places: Vec<_> = running.places().collect();
        let first = Register::Config(case.all(0).next().unwrap(), counter, Size::Qword);
        assert_eq!(places, [(case.places.len() as u32, first)], "{name}");
        // The last ones go over 48 bits, and over 32.
        for events in [3, 0, 1 << 47, 1 << 47, 0xffff_fff0, 0x20] {
            running.begin(&mut model);
            let last = case.all(0).last().unwrap();
            model.count(last, counter, events);
            model.count(case.all(0).next().unwrap(), counter, 5);
            running.end(&mut model);
            assert_eq!(running.counts(), [events + 5], "{name}");
        }
        running.release(&mut model);
        // What counted is as before as well.
        assert_eq!(model.held(), found, "{name}");
        // Nothing else than the unit's registers was written.
        let known = registers(case.own, case.control, case.apart, case.counter);
        for write in &model.writes {
            let offset = write.split(' ').next_back().unwrap().split('=').next().unwrap();
            let offset = u16::from_str_radix(&offset[2..], 16).unwrap();
            assert!(known.contains(&offset), "{name}: {write}");
        }
    }
}

#[test]
fn s3_units_of_another_package_are_left_alone() {
    for case in cases() {
        for package in 0..3 {
            let mut model = case.model(3);
            model.package = package;
            let name = format!("{:#x} {:?}, package {package}", case.signature, case.unit);
            let mut running = program(&mut model, event(case.unit, case.select)).unwrap();
            assert_eq!(running.places().next().unwrap().0, case.places.len() as u32, "{name}");
            running.begin(&mut model);
            for other in 0..3 {
                for place in case.all(other) {
                    model.count(place, case.counter + 24, 10 + u64::from(other));
                }
            }
            running.end(&mut model);
            let all = case.places.len() as u64;
            assert_eq!(running.counts(), [all * (10 + u64::from(package))], "{name}");
            running.release(&mut model);
            let bus = format!("PCI {:02x}:", package * 64 + 5);
            assert!(model.writes.iter().all(|write| write.starts_with(&bus)), "{name}");
        }
    }
}

#[test]
fn s3_without_the_functions_nothing_is_written() {
    for case in cases() {
        let name = format!("{:#x} {:?}", case.signature, case.unit);
        let wanted = event(case.unit, case.select);
        let refused = |mut model: Model, why| {
            assert_eq!(program(&mut model, wanted).unwrap_err(), why, "{name}");
            assert_eq!(model.writes, Vec::<String>::new(), "{name}");
        };
        refused(Model::new(case.signature), Refusal::NoDevice(case.ubox.0));
        // Only the UBOX.
        let mut alone = case.model(1);
        alone.functions.retain(|place, _| place.device == 31);
        refused(alone, Refusal::NoDevice(case.places[0].0));
        // The same ids of another vendor, and other places than those where they may be.
        let mut foreign = case.model(1);
        for place in case.all(0) {
            foreign.set(place, 0, u32::from(case.places[0].0) << 16 | 0x1022);
        }
        refused(foreign, Refusal::NoDevice(case.places[0].0));
        // What cannot be reached.
        refused(Model { reaches: false, ..case.model(1) }, Refusal::NoDevices);
        // UBOXes that all say the same.
        let mut same = case.model(2);
        let boxes: Vec<_> = same
            .functions
            .keys()
            .copied()
            .filter(|place| place.device == 31 && place.function == 2)
            .collect();
        for place in boxes {
            same.set(place, case.ubox.1[0], 7);
        }
        refused(same, Refusal::Packages(case.ubox.0));
    }
    // Skylake's ids mean something else at other places.
    let mut model = Model::new(SKYLAKE);
    ubox(&mut model, at(0, 31, 2), 0x2014, [0xc0, 0xd4], 0);
    model.add(at(5, 9, 2), 0x2042, registers(0xf4, 0xd8, 4, 0xa0));
    let refused = program(&mut model, event(Unit::Memory, 0x304)).unwrap_err();
    assert_eq!((refused, model.writes.len()), (Refusal::NoDevice(0x2042), 0));
}

/// A unit that ignores what is written, or whose registers read all ones, does not count; the others do, and are said to.
#[test]
fn s3_units_that_do_not_answer_are_left_out_or_refused() {
    for case in cases() {
        let name = format!("{:#x} {:?}", case.signature, case.unit);
        let wanted = event(case.unit, case.select);
        let counter = case.counter + 24;
        for all_ones in [false, true] {
            let mut model = case.model(1);
            let places: Vec<_> = case.all(0).collect();
            let silence = |model: &mut Model, place: Address| {
                let known = registers(case.own, case.control, case.apart, case.counter);
                for &offset in &known {
                    model.set(place, offset, if all_ones { u32::MAX } else { 0 });
                }
                model.functions.get_mut(&place).unwrap().fixed.extend(known);
            };
            silence(&mut model, places[0]);
            let found = model.held();
            let running = program(&mut model, wanted).unwrap();
            let (units, first) = running.places().next().unwrap();
            assert_eq!(units as usize, places.len() - 1, "{name}");
            assert_eq!(first, Register::Config(places[1], counter, Size::Qword), "{name}");
            running.release(&mut model);
            assert_eq!(model.held(), found, "{name}");
            places.iter().skip(1).for_each(|place| silence(&mut model, *place));
            let found = model.held();
            let absent = Refusal::Absent(Register::Config(places[0], counter, Size::Qword));
            assert_eq!(program(&mut model, wanted).unwrap_err(), absent, "{name}");
            assert_eq!(model.held(), found, "{name}");
        }
        // Half of a counter: 32 bits are too few.
        let mut narrow = case.model(1);
        for function in narrow.functions.values_mut() {
            function.fixed.extend((0..4).map(|number| case.counter + 8 * number + 4));
        }
        assert!(matches!(program(&mut narrow, wanted), Err(Refusal::Absent(_))), "{name}");
    }
}

#[test]
fn s3_registers_that_ports_do_not_reach_are_refused_by_name() {
    for case in cases() {
        let name = format!("{:#x} {:?}", case.signature, case.unit);
        let mut model = Model { extended: false, ..case.model(1) };
        let programmed = program(&mut model, event(case.unit, case.select));
        if case.own < 0x100 {
            programmed.unwrap_or_else(|why| panic!("{name}: {why}")).release(&mut model);
            continue;
        }
        let why = programmed.unwrap_err();
        let own = Register::Config(case.all(0).next().unwrap(), case.own, Size::Dword);
        assert_eq!(why, Refusal::Absent(own), "{name}");
        assert!(model.writes.is_empty(), "{name}: {:?}", model.writes);
    }
}

/// The lower half goes over between the reads of the halves: the value is one that the counter had.
#[test]
fn s3_halves_of_a_counter_belong_together() {
    let case = &cases()[4];
    let mut model = case.model(1);
    let place = case.all(0).next().unwrap();
    model.set(place, case.counter, 0xffff_fffd);
    model.set(place, case.counter + 4, 6);
    model.moves = Some((place, case.counter, 4));
    let register = Register::Config(place, case.counter, Size::Qword);
    // Read at 6:ffff_fffd, moves to 7:1 and on to 7:5.
    assert_eq!(register.read(&mut model), Some(7 << 32 | 5));
    assert_eq!(register.to_string(), "PCI 05:0a.2, register 0xa0");
}

/// Ice Lake's channels: Linux, `SNR_IMC_MMIO_…`; the address is in a function's registers.
fn channels(packages: u32) -> Model {
    let mut model = Model { packages, ..Model::new(ICE_LAKE) };
    for package in 0..packages {
        let bus = package as u8 * 64;
        ubox(&mut model, at(bus + 63, 31, 2), 0x3450, [0xc0, 0xd4], package);
        let place = at(bus + 60, 0, 1);
        model.add(place, 0x3451, []);
        // Bits 51:23; what is above is something else.
        model.set(place, 0xd0, 0xe000_01f7 + package);
        for number in 0..3 {
            model.set(place, 0xd8 + 4 * number, 0x800 | (0x80 * (1 + u32::from(number))));
            for channel in [0x2_2800, 0x2_6800] {
                let base = base(package, number.into()) + channel;
                model.add_memory(base, 4);
                model.add_memory(base + 8, 32);
                model.add_memory(base + 0x40, 16);
            }
        }
    }
    model
}

fn base(package: u32, number: u64) -> u64 {
    (0x1f7 + u64::from(package)) << 23 | (0x80 * (1 + number)) << 12
}

#[test]
fn s3_ice_lakes_channels_are_in_memory() {
    for package in 0..2 {
        let mut model = Model { package, ..channels(2) };
        let found = model.held();
        let mut running = program(&mut model, event(Unit::Memory, 0xf04)).unwrap();
        let first = base(package, 0) + 0x2_2800;
        let places: Vec<_> = running.places().collect();
        assert_eq!(places, [(6, Register::Memory(first + 0x20, Size::Qword))]);
        assert_eq!(model.word(first + 0x4c) & 0xffff_ffff, 0x40_0f04);
        assert_eq!(model.word(first) & 0xffff_ffff, 0);
        for events in [7, 0, 1 << 47, 1 << 47] {
            running.begin(&mut model);
            model.count_memory(first + 0x20, events);
            model.count_memory(base(package, 2) + 0x2_6800 + 0x20, 1);
            model.count_memory(base(1 - package, 0) + 0x2_2800 + 0x20, 1000);
            running.end(&mut model);
            assert_eq!(running.counts(), [events + 1]);
        }
        running.release(&mut model);
        let mut after = model.held();
        // What the other package counted.
        after.1.insert(base(1 - package, 0) + 0x2_2820, 0x20);
        assert_eq!(after, found);
    }
}

#[test]
fn s3_ice_lakes_channels_that_are_not_there_are_refused() {
    let wanted = event(Unit::Memory, 0xf04);
    let place = at(60, 0, 1);
    for (offset, value) in [(0xd0, 0), (0xd0, u32::MAX), (0, 0x3452_8086)] {
        let mut model = channels(1);
        model.set(place, offset, value);
        let refused = program(&mut model, wanted).unwrap_err();
        assert_eq!(refused, Refusal::NoDevice(0x3451), "{offset:#x} {value:#x}");
        assert!(model.writes.is_empty());
    }
    // A controller without an address; memory where none is; cached memory.
    let mut fewer = channels(1);
    fewer.set(place, 0xd8, 0);
    assert_eq!(program(&mut fewer, wanted).unwrap().places().next().unwrap().0, 4);
    let mut none = channels(1);
    none.memory.clear();
    let first = base(0, 0) + 0x2_2800;
    let counter = Register::Memory(first + 0x20, Size::Qword);
    assert_eq!(program(&mut none, wanted).unwrap_err(), Refusal::Absent(counter));
    let mut cached = Model { cached: Some(first), ..channels(1) };
    let running = program(&mut cached, wanted).unwrap();
    assert_eq!(running.places().next().unwrap().0, 5, "a unit that is no device");
    assert!(cached.writes.iter().all(|write| !write.starts_with(&format!("{first:#x}="))));
    let mut deaf = channels(1);
    deaf.deaf.extend(deaf.memory.keys().copied().collect::<Vec<_>>());
    assert_eq!(program(&mut deaf, wanted).unwrap_err(), Refusal::Absent(counter));
}

/// Skylake's IIO: its events of data are counted by the first two counters.
#[test]
fn s3_skylakes_pcie_is_counted_by_msr() {
    let mut model = Model::new(SKYLAKE);
    for unit in 0..4 {
        model.msrs.extend((0..16).map(|register| (0xa40 + 0x20 * unit + register, 0x55)));
    }
    let found = model.held();
    // Ports of the first part (bit 36), requests of all kinds (46:44).
    let part =
        |number: u64| event(Unit::Io, 0x483 | (0x7010 << (number / 4) | 1 << (4 + number)) << 32);
    let uncore = Uncore::find(&model).unwrap();
    let parts: Vec<Event> = (0..4).map(part).collect();
    let rounds = uncore.rounds(&[parts]);
    assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    assert!(rounds.iter().flatten().all(|placed| placed.counter < 2), "{rounds:?}");
    let mut running = Uncore::program(&rounds[0], &mut model).unwrap();
    assert_eq!(running.places().next(), Some((4, Register::Msr(0xa42))));
    assert_eq!(model.msrs[&0xa49], 0x7010_0040_0483);
    running.begin(&mut model);
    *model.msrs.get_mut(&0xaa2).unwrap() += 9;
    running.end(&mut model);
    assert_eq!(running.counts(), [9, 0]);
    running.release(&mut model);
    assert_eq!(model.held(), found);
}
