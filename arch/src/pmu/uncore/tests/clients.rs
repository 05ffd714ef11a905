//! The client's memory controllers, in memory at an address of the host bridge (Linux, `adl_uncore_imc`).

use super::super::*;
use super::model::{Model, at};
use super::servers::{event, program};
use crate::pci::devices::Size;

const ALDER_LAKE: u32 = 0x0009_0672;
const METEOR_LAKE: u32 = 0x000a_06a4;
const ARROW_LAKE: u32 = 0x000c_0662;
const LUNAR_LAKE: u32 = 0x000b_06d1;
/// MCHBAR, with the bit that says that it is there.
const BAR: u64 = 0xf_fedc_0001;
const FIRST: u64 = 0xf_fedc_d900;
const SECOND: u64 = FIRST + 0x1_0000;
/// UNC_M_TOTAL_DATA (perfmon, `arrowlake_uncore.json`).
const DATA: u64 = 0x3c;

fn client(signature: u32, controllers: u64) -> Model {
    let mut model = Model::new(signature);
    model.add(at(0, 0, 0), 0x7d1c, []);
    model.set(at(0, 0, 0), 0x48, BAR as u32);
    model.set(at(0, 0, 0), 0x4c, (BAR >> 32) as u32);
    for unit in (0..controllers).map(|number| FIRST + number * 0x1_0000) {
        // The two switches, five controls, five counters of 64 bits.
        model.add_memory(unit + 0xc0, 8);
        model.add_memory(unit + 0xd0, 20);
        model.add_memory(unit + 0xe8, 40);
    }
    model
}

#[test]
fn s3_the_clients_memory_controllers_are_counted_on_each_model() {
    for signature in [ALDER_LAKE, METEOR_LAKE, ARROW_LAKE, LUNAR_LAKE] {
        let mut model = client(signature, 2);
        let found = model.held();
        let mut running = program(&mut model, event(Unit::Memory, DATA)).unwrap();
        let places: Vec<_> = running.places().collect();
        assert_eq!(places, [(2, Register::Memory(FIRST + 0xe8 + 32, Size::Qword))]);
        for unit in [FIRST, SECOND] {
            // Not frozen; the fifth control has the event and no enable, which it does not have.
            assert_eq!(model.word(unit + 0xc4) as u32, 0, "{signature:#x}");
            assert_eq!(model.word(unit + 0xd0 + 16) as u32, DATA as u32);
        }
        assert_eq!((model.word(SECOND + 0xc0) as u32, model.word(FIRST + 0xc0) as u32), (6, 0x20));
        // Counters of 64 bits start over at 0.
        for events in [7, 0, 1 << 60] {
            running.begin(&mut model);
            for (unit, own) in [(FIRST, events), (SECOND, 5)] {
                let value = model.word(unit + 0xe8 + 32).wrapping_add(own);
                model.set_word(unit + 0xe8 + 32, value);
            }
            running.end(&mut model);
            assert_eq!(running.counts(), [events + 5], "{signature:#x}");
        }
        running.release(&mut model);
        assert_eq!(model.held(), found, "{signature:#x}");
    }
}

/// The switch of all resets all counters, so it comes before the first event, and never again.
#[test]
fn s3_several_events_of_the_memory_controllers_are_let_count_once() {
    let mut model = client(ARROW_LAKE, 2);
    let uncore = Uncore::find(&model).unwrap();
    let group = [0x22, 0x23, 0x24, 0x25, 0x26, 0x323].map(|select| event(Unit::Memory, select));
    assert!(group.iter().all(|event| uncore.check(event).is_ok()));
    let rounds = uncore.rounds(&[group.to_vec()]);
    assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [5, 1], "five counters");
    let running = Uncore::program(&rounds[0], &mut model).unwrap();
    let switch = format!("{:#x}=0x6", SECOND + 0xc0);
    let at: Vec<usize> =
        (0..).zip(&model.writes).filter(|(_, one)| **one == switch).map(|(at, _)| at).collect();
    assert_eq!(at, [0], "{:?}", model.writes);
    running.release(&mut model);
    // Channels and edges, but no thresholds and no filters.
    assert!(uncore.check(&event(Unit::Memory, 0x4_0f22)).is_ok());
    for bits in [0x80_0000, 0x100_0000, 0x1000] {
        assert_eq!(uncore.check(&event(Unit::Memory, 0x22 | bits)), Err(Refusal::Bits(bits)));
    }
}

#[test]
fn s3_one_memory_controller_counts_alone() {
    let mut model = client(ALDER_LAKE, 1);
    let found = model.held();
    let running = program(&mut model, event(Unit::Memory, DATA)).unwrap();
    assert_eq!(running.places().map(|(units, _)| units).collect::<Vec<_>>(), [1]);
    assert!(!model.writes.contains(&format!("{:#x}=0x6", SECOND + 0xc0)), "{:?}", model.writes);
    running.release(&mut model);
    assert_eq!(model.held(), found);
}

#[test]
fn s3_memory_controllers_that_are_not_mapped_are_refused_by_their_register() {
    let host = at(0, 0, 0);
    let wanted = event(Unit::Memory, DATA);
    let refused = Refusal::NotMapped(host, 0x48);
    assert!(
        refused.to_string().contains("PCI 00:00.0, register 0x48, has no address"),
        "{refused}"
    );
    for (offset, value) in [(0x48, 0), (0x48, 0xfedc_0000), (0x48, u32::MAX), (0, 0x7d1c_1022)] {
        let mut model = client(ARROW_LAKE, 2);
        model.set(host, offset, value);
        assert_eq!(program(&mut model, wanted).unwrap_err(), refused, "{offset:#x}={value:#x}");
        assert!(model.writes.is_empty(), "{:?}", model.writes);
    }
    let mut none = client(ARROW_LAKE, 0);
    let counter = Register::Memory(FIRST + 0xe8 + 32, Size::Qword);
    assert_eq!(program(&mut none, wanted).unwrap_err(), Refusal::Absent(counter));
    let mut unreached = Model { reaches: false, ..client(ARROW_LAKE, 2) };
    assert_eq!(program(&mut unreached, wanted).unwrap_err(), Refusal::NoDevices);
    // The processors before have theirs elsewhere, and their counters run freely.
    let before = client(0x0008_06c1, 2);
    let uncore = Uncore::find(&before).unwrap();
    assert_eq!(uncore.check(&wanted), Err(Refusal::NoUnit(0x8c)));
}
