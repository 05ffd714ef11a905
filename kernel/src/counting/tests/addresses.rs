use super::*;
use crate::counting::address::{Act, AddressError, AddressGate, Hit, On, Point};
use crate::counting::gate::{Begin, Gate};
use crate::counting::taken_out::TakenOut;
use arch::pmu::{Deferred, Rings};
use protocol::job::gate::{GateAct, GateAt, GateOn, GatePoint};
use protocol::record::CountGate;

fn point(address: u64, act: Act) -> Point {
    Point { address, on: On::Execute, act }
}

/// A gate of a task that begins at 0x1000, with these points at instructions.
fn gate(task: u16, points: &[(u64, GateAct)], taken_out: TakenOut) -> Gate {
    let mut job = jobs::item(vec![], 0);
    let point =
        |&(offset, act): &_| GatePoint { task, at: GateAt::Code(offset), on: GateOn::Execute, act };
    job.gate = points.iter().map(point).collect();
    let mut gate = Gate::of(&job, taken_out).unwrap();
    let begins = vec![Begin { code: 0x1000, registers: [0; 5] }; usize::from(task) + 1];
    gate.place(&begins).unwrap();
    gate
}

/// In ring 0 the kernel's own ways are taken out, whichever counters there are: what is left is what lies between the
/// addresses, as in ring 3.
#[test]
fn m14_m3_counting_between_two_addresses() {
    for (model, mut bench, driver, known) in machines() {
        let requests = vec![instructions().in_rings(Rings::USER), instructions(), instructions()];
        let Ok(set) = Set::build(requests, Sharing::Together, &known) else { continue };
        bench.deferred = Some(Deferred::new(&driver));
        let taken_out = TakenOut::measure(&set, &driver, &mut bench).unwrap();
        for (request, expected) in [(0, 0), (1, 49), (2, 49)] {
            assert_eq!(taken_out.request(request), Some(expected), "{model:?}: {request}");
        }
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        let mut gate = gate(0, &[(0x10, GateAct::Start), (0x30, GateAct::Stop)], taken_out);
        // Instructions of one byte each at 0x1000 to 0x1063, in ring 0 and in ring 3 by turns, and sometimes an interrupt.
        for turn in 0..10 {
            let ring = if turn % 2 == 0 { Ring::Kernel } else { Ring::User };
            for offset in 0..0x64u64 {
                let register = [0x10, 0x30].iter().position(|&at| at == offset);
                if let Some(register) = register {
                    bench.enter();
                    bench.run(Ring::Kernel, 3000);
                    let own = gate.trapped(Some(0), 1 << register, &mut session, &mut bench);
                    assert_eq!(own.unwrap(), Some(true));
                    bench.run(Ring::Kernel, 2000);
                    bench.leave();
                }
                if offset % 7 == turn {
                    bench.enter();
                    gate.suspend(Some(0), &mut session, &mut bench).unwrap();
                    bench.run(Ring::Kernel, 4000);
                    gate.resume(Some(0), &mut session, &mut bench).unwrap();
                    bench.leave();
                }
                bench.run(ring, 1);
            }
        }
        let counts = raw(&mut session, &mut bench);
        assert_eq!(counts, [5 * 0x20, 10 * 0x20, 10 * 0x20], "{model:?}");
    }
}

#[test]
fn m14_debug_registers_as_the_manual_has_them() {
    let points = [(0x1000, Act::Start), (0x2000, Act::Stop), (0x3000, Act::Stop)];
    let gate = AddressGate::new(&points.map(|(address, act)| point(address, act))).unwrap();
    // L0, L1, L2, R/W and LEN of an instruction.
    assert_eq!((gate.dr7(), gate.addresses()), (0x415, [0x1000, 0x2000, 0x3000, 0]));
    let hit = |starts, stops| Some(Hit { starts, stops, before: true });
    assert_eq!(gate.hit(0xffff_0ff0), None);
    assert_eq!(gate.hit(0xffff_0ff1), hit(1, 0));
    assert_eq!(gate.hit(0xffff_0ff4), hit(0, 1));
    assert_eq!(gate.hit(0xffff_0ff7), hit(1, 2));
    // Bit 3 is of a register that is not enabled.
    assert_eq!(gate.hit(0xffff_0ff8), None);
    let all = AddressGate::new(&[point(0, Act::Start); 5]);
    assert_eq!(all, Err(AddressError::TooMany(5)));
    let wrong = 0x8000_0000_0000;
    let not_canonical = AddressGate::new(&[point(wrong, Act::Stop)]);
    assert_eq!(not_canonical, Err(AddressError::NotCanonical(wrong)));
    assert!(AddressGate::new(&[point(0xffff_8000_0000_0000, Act::Stop)]).is_ok());
}

/// SDM vol. 3, figure 17-1 and 17.2.4: R/W 01 is a write, 11 a read or a write; LEN 00, 01, 11 and 10 are 1, 2, 4 and 8 bytes.
#[test]
fn m14_data_has_its_bits_and_its_alignment() {
    let data = |address, on| Point { address, on, act: Act::Start };
    let gate = AddressGate::new(&[
        data(0x1001, On::Write(1)),
        data(0x1002, On::Access(2)),
        data(0x1004, On::Write(4)),
        data(0x1008, On::Access(8)),
    ]);
    let gate = gate.unwrap();
    assert_eq!(gate.dr7(), 0b1011_1101_0111_0001 << 16 | 0x400 | 0b0101_0101);
    // Behind the instruction.
    assert_eq!(gate.hit(0b1000), Some(Hit { starts: 1, stops: 0, before: false }));
    for (address, on, bytes) in
        [(0x1001, On::Write(2), 2), (0x1002, On::Access(4), 4), (0x1004, On::Write(8), 8)]
    {
        let refused = AddressGate::new(&[data(address, on)]);
        assert_eq!(refused, Err(AddressError::NotAligned(address, bytes)));
    }
}

/// A set whose last pass is over stays so, whatever the gate's task does: neither its next turn nor the address at which
/// counting starts lets it go on.
#[test]
fn m14_m6_a_gate_does_not_go_on_behind_the_last_pass() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().in_rings(Rings::USER)], &known);
        let run = Run { passes: 1, ..Run::default() };
        let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
        let mut gate = gate(0, &[(0x10, GateAct::Start)], TakenOut::default());
        assert!(gate.trapped(Some(0), 1, &mut session, &mut bench).unwrap().is_some());
        bench.run(Ring::User, 100);
        gate.suspend(Some(0), &mut session, &mut bench).unwrap();
        session.next(&mut bench).unwrap();
        assert!(session.has_ended(), "{model:?}");
        gate.resume(Some(0), &mut session, &mut bench).unwrap();
        bench.run(Ring::User, 100);
        assert!(gate.trapped(Some(0), 1, &mut session, &mut bench).unwrap().is_some());
        bench.run(Ring::User, 100);
        assert!(!session.is_running(), "{model:?}");
        assert_eq!(raw(&mut session, &mut bench), [100], "{model:?}");
    }
}

/// The record says how often counting began and ended: an address at which nothing changes is neither.
#[test]
fn m14_a_gates_record_has_its_starts_and_stops() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().in_rings(Rings::USER)], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        let points = [(0x10, GateAct::Start), (0x20, GateAct::Stop)];
        let mut gate = gate(1, &points, TakenOut::default());
        let (start, stop) = (1, 2);
        for dr6 in [stop, start, start, stop, start, stop, stop, start] {
            assert!(gate.trapped(Some(1), dr6, &mut session, &mut bench).unwrap().is_some());
        }
        let expected = CountGate { task: 1, starts: 3, stops: 2, taken: 8, deepest: None };
        assert_eq!(gate.results(), [expected], "{model:?}");
        let own = gate.trapped(Some(1), 0, &mut session, &mut bench);
        assert_eq!(own.unwrap(), None, "{model:?}: another's");
        let own = gate.trapped(Some(0), 1, &mut session, &mut bench);
        assert_eq!(own.unwrap(), None, "{model:?}: a task without a gate");
    }
}
