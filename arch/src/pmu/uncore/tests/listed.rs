//! Units that a package lists: from Sapphire Rapids on.

use super::super::*;
use super::model::{Model, at};
use super::servers::{SAPPHIRE_RAPIDS, event, program};
use crate::pci::devices::{Address, Size};
use discovery::TableError;

/// Granite Rapids, Sierra Forest, Grand Ridge, Clearwater Forest.
const LISTED: [u32; 4] = [0x000a_06d1, 0x000a_06f3, 0x000b_0660, 0x000d_06d0];

/// Where a package has its table, and how its units are reached.
fn table(package: u32) -> u64 {
    0x20_0000_0000 + 0x1000_0000 * u64::from(package)
}

fn channel(package: u32, number: u64) -> u64 {
    table(package) + 0x10_0000 + 0x4000 * number + 0x2800
}

fn link(package: u32, number: u8) -> Address {
    at(package as u8 * 64 + 0x20, 8 + number, 1)
}

/// A package of each kind of unit, some more than once: `[type, first address, access, control, counter]`.
fn units(package: u32) -> Vec<[u64; 5]> {
    let config = |place: Address, register: u64| {
        u64::from(place.bus) << 20
            | u64::from(place.device) << 15
            | u64::from(place.function) << 12
            | register
    };
    vec![
        [0, 0x2000, 0, 2, 8],
        [0, 0x2010, 0, 2, 8],
        [1, 0x3000, 0, 2, 8],
        [2, 0x3400, 0, 2, 8],
        [4, 0x2fc0, 0, 2, 8],
        [6, channel(package, 0), 1, 0x40, 8],
        [6, channel(package, 1), 1, 0x40, 8],
        [7, config(link(package, 4), 0x438), 2, 0x30, 8],
        [8, config(link(package, 0), 0x318), 2, 0x38, 8],
        [8, config(link(package, 1), 0x318), 2, 0x38, 8],
    ]
}

/// The function that names the table: a chain of capabilities, of which the second one of its id is the table's.
fn add_table(model: &mut Model, place: Address, id: u16, package: u32) {
    model.add(place, id, []);
    for (offset, value) in [
        (0x100, 0x1401_0001),
        (0x140, 0x1801_0023),
        (0x148, 0x0002),
        (0x180, 0x0001_0023),
        (0x188, 0x0001),
        (0x18c, 0x0002),
        // Base address register 2, of 64 bits.
        (0x18, table(package) as u32 | 4),
        (0x1c, (table(package) >> 32) as u32),
    ] {
        model.set(place, offset, value);
    }
}

fn table_place(package: u32) -> Address {
    at(package as u8 * 64 + 1, 0, 3)
}

fn model(signature: u32, packages: u32) -> Model {
    let mut model = Model { packages, ..Model::new(signature) };
    for package in 0..packages {
        add_table(&mut model, table_place(package), 0x09a7, package);
        let units = units(package);
        let words = |at: u64, words: [u64; 3]| {
            (0..).zip(words).map(move |(word, value)| (at + 8 * word, value))
        };
        let count = units.len() as u64 + 1;
        for (at, word) in words(table(package), [4 << 8 | count << 16, 0x2ff0, 0]) {
            model.set_word(at, word);
        }
        // An empty entry comes first.
        for (at, word) in words(table(package) + 32, [0, 0, 0]) {
            model.set_word(at, word);
        }
        for (number, [kind, address, access, control, counter]) in (2..).zip(units) {
            let about = 4 | control << 8 | 48 << 16 | counter << 24 | access << 62;
            for (at, word) in
                words(table(package) + 32 * number, [about, address, kind | number << 16])
            {
                model.set_word(at, word);
            }
        }
        for number in 0..2 {
            model.add_memory(channel(package, number), 4);
            model.add_memory(channel(package, number) + 8, 32);
            model.add_memory(channel(package, number) + 0x40, 16);
        }
        for (place, own, control, counter) in [
            (link(package, 0), 0x318, 0x350, 0x320),
            (link(package, 1), 0x318, 0x350, 0x320),
            (link(package, 4), 0x438, 0x468, 0x440),
        ] {
            let eight = |first: u16| (0..8).map(move |number| first + 4 * number);
            model.add(place, 0x3200, [own].into_iter().chain(eight(control)).chain(eight(counter)));
        }
    }
    for first in [0x2000, 0x2010, 0x3000, 0x3400, 0x2fc0] {
        model.msrs.extend((first..first + 16).map(|msr| (msr, 0x33)));
    }
    model
}

/// A unit, an event of it, how many there are and what the first of them counts with.
fn wanted(package: u32) -> Vec<(Unit, u64, u32, Register)> {
    let memory = Register::Memory(channel(package, 0) + 0x20, Size::Qword);
    let config = |place, offset| Register::Config(place, offset, Size::Qword);
    vec![
        (Unit::Caching, 0xc8_17fe_0000_0135, 2, Register::Msr(0x200b)),
        // Ports 47:36 and kinds of requests 50:48; only the first two counters.
        (Unit::Io, 0x7_0ff0_0000_0483, 1, Register::Msr(0x3009)),
        (Unit::Coherence, 0x101f, 1, Register::Msr(0x340b)),
        (Unit::Power, 0x35, 1, Register::Msr(0x2fcb)),
        (Unit::Memory, 0xcf05, 2, memory),
        (Unit::Link, 0xf02, 2, config(link(package, 0), 0x338)),
    ]
}

#[test]
fn s3_units_that_a_package_lists_count_and_are_as_before() {
    for signature in LISTED {
        for (packages, package) in [(1, 0), (2, 0), (2, 1)] {
            let mut model = Model { package, ..model(signature, packages) };
            let found = model.held();
            for (unit, select, count, first) in wanted(package) {
                let name = format!("{signature:#x} {unit:?} {package}");
                let mut running = program(&mut model, event(unit, select)).unwrap();
                assert_eq!(running.places().collect::<Vec<_>>(), [(count, first)], "{name}");
                running.begin(&mut model);
                match first {
                    Register::Msr(msr) => *model.msrs.get_mut(&msr).unwrap() += 12,
                    Register::Config(place, offset, _) => model.count(place, offset, 12),
                    Register::Memory(at, _) => model.count_memory(at, 12),
                }
                running.end(&mut model);
                assert_eq!(running.counts(), [12], "{name}");
                running.release(&mut model);
                assert_eq!(model.held(), found, "{name}");
            }
        }
    }
}

/// Sapphire Rapids has its agents and links by other ways.
#[test]
fn s3_sapphire_rapids_lists_channels_pcie_mesh_and_power_control() {
    let mut model = model(SAPPHIRE_RAPIDS, 1);
    let found = model.held();
    let mesh = Register::Config(link(0, 4), 0x458, Size::Qword);
    let known =
        wanted(0).into_iter().filter(|(unit, ..)| ![Unit::Caching, Unit::Link].contains(unit));
    for (unit, select, count, first) in known.chain([(Unit::Mesh, 0x3_0000_0121, 1, mesh)]) {
        let running = program(&mut model, event(unit, select)).unwrap();
        assert_eq!(running.places().collect::<Vec<_>>(), [(count, first)], "{unit:?}");
        running.release(&mut model);
        assert_eq!(model.held(), found, "{unit:?}");
    }
}

/// The select of a control in memory has 32 bits.
#[test]
fn s3_controls_of_listed_units_have_the_event() {
    let mut model = model(LISTED[0], 1);
    let running = program(&mut model, event(Unit::Memory, 0xcf05)).unwrap();
    assert_eq!(model.word(channel(0, 1) + 0x4c) & 0xffff_ffff, 0x40_cf05);
    running.release(&mut model);
    let running = program(&mut model, event(Unit::Link, 0x12_0000_0f02)).unwrap();
    assert_eq!(model.get(link(0, 1), 0x368), 0x12_0040_0f02);
    running.release(&mut model);
    let wide = program(&mut model, event(Unit::Memory, 1 << 32)).unwrap_err();
    assert_eq!(wide, Refusal::Bits(1 << 32));
}

#[test]
fn s3_tables_that_are_missing_or_broken_are_refused_and_nothing_is_written() {
    let wanted = event(Unit::Memory, 0xcf05);
    let refused = |mut model: Model, why: Refusal| {
        assert_eq!(program(&mut model, wanted).unwrap_err(), why);
        assert!(model.writes.is_empty(), "{why}: {:?}", model.writes);
    };
    for signature in LISTED.into_iter().chain([SAPPHIRE_RAPIDS]) {
        refused(Model::new(signature), Refusal::NoTable);
        refused(Model { reaches: false, ..model(signature, 1) }, Refusal::NoDevices);
        refused(Model { extended: false, ..model(signature, 1) }, Refusal::NoTable);
    }
    let whole = || model(LISTED[0], 1);
    let place = table_place(0);
    for (offset, value) in [
        // Another vendor, no capability, one that is not the table's, one that leads to itself.
        (0, 0x09a7_1022),
        (0x100, 0),
        (0x188, 3),
        (0x140, 0x1401_0024),
        // A base address register of ports, of none, and an offset to it.
        (0x18, 0x1001),
        (0x18, 0),
        (0x18, !0xf | 4),
        (0x18c, 0x4_0002),
    ] {
        let mut model = whole();
        if offset == 0x18 {
            model.set(place, 0x1c, if value & 4 == 4 { u32::MAX } else { 0 });
        }
        model.set(place, offset, value);
        refused(model, Refusal::NoTable);
    }
    let at = table(0);
    let mut ones = whole();
    ones.memory.retain(|place, _| *place < at || at + 0x1000 <= *place);
    let global = TableError::Global(u64::MAX, u64::MAX);
    refused(ones, Refusal::Table(at, global));
    refused(Model { cached: Some(at), ..whole() }, Refusal::Table(at, TableError::Unread));
    let mut short = whole();
    short.set_word(at, 2 << 8 | 4 << 16);
    refused(short, Refusal::Table(at, TableError::Stride(2)));
    let mut empty = whole();
    empty.set_word(at, 4 << 8);
    refused(empty, Refusal::NotListed(6));
    // Tables and packages that do not go together.
    refused(Model { packages: 2, ..whole() }, Refusal::Tables { tables: 1, packages: 2 });
    let mut two = whole();
    add_table(&mut two, at_bus(9), 0x09a7, 0);
    refused(two, Refusal::Tables { tables: 2, packages: 1 });
    // A unit with fewer counters than the one that is asked for.
    let mut few = whole();
    let entry = at + 32 * 7;
    few.set_word(entry, few.word(entry) & !0xff | 2);
    let first = Register::Memory(channel(0, 0), Size::Dword);
    refused(few, Refusal::Counters(first, 2));
}

fn at_bus(bus: u8) -> Address {
    at(bus, 0, 3)
}

/// Linux: without the device that has nothing else any function may have it.
#[test]
fn s3_another_function_may_name_the_table() {
    let mut model = model(LISTED[1], 1);
    model.functions.remove(&table_place(0));
    add_table(&mut model, at(0x7e, 3, 0), 0x3456, 0);
    let running = program(&mut model, event(Unit::Memory, 0xcf05)).unwrap();
    assert_eq!(running.places().next().unwrap().0, 2);
}

/// Nothing is written to a function that is not there, or another vendor's.
#[test]
fn s3_listed_functions_that_are_not_there_are_left_alone() {
    let wanted = event(Unit::Link, 0xf02);
    let mut model = model(LISTED[3], 1);
    model.functions.remove(&link(0, 0));
    let running = program(&mut model, wanted).unwrap();
    let counter = Register::Config(link(0, 1), 0x338, Size::Qword);
    assert_eq!(running.places().collect::<Vec<_>>(), [(1, counter)]);
    running.release(&mut model);
    model.writes.clear();
    model.set(link(0, 1), 0, 0x3200_1022);
    let first = Register::Config(link(0, 0), 0x318, Size::Dword);
    assert_eq!(program(&mut model, wanted).unwrap_err(), Refusal::NoFunction(first));
    assert!(model.writes.is_empty(), "{:?}", model.writes);
}

/// A function that the table names and that is not there, or ignores what is written.
#[test]
fn s3_listed_units_that_do_not_answer_are_left_out_or_refused() {
    let wanted = event(Unit::Link, 0xf02);
    let mut model = model(LISTED[0], 1);
    for place in [link(0, 0), link(0, 1)] {
        let registers = model.functions[&place].registers.keys().copied().collect::<Vec<_>>();
        model.functions.get_mut(&place).unwrap().fixed.extend(registers);
        let found = model.held();
        let programmed = program(&mut model, wanted);
        if place == link(0, 0) {
            let running = programmed.unwrap();
            assert_eq!(running.places().next().unwrap().0, 1);
            running.release(&mut model);
        } else {
            let first = Register::Config(link(0, 0), 0x338, Size::Qword);
            assert_eq!(programmed.unwrap_err(), Refusal::Absent(first));
        }
        assert_eq!(model.held(), found);
    }
}
