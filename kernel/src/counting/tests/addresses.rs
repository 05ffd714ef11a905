use super::*;
use crate::counting::address::{Act, AddressError, AddressGate};
use arch::pmu::Rings;

#[test]
fn m14_m3_counting_between_two_addresses() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().in_rings(Rings::USER), instructions()], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        // Instructions of one byte each at 0x1000 to 0x1063, in ring 3, ten times.
        let gate = AddressGate::new(&[(0x1010, Act::Start), (0x1030, Act::Stop)]).unwrap();
        let (before, after) = (40, 25);
        for _ in 0..10 {
            for address in 0x1000..0x1064u64 {
                let hit = gate.addresses().iter().position(|&at| at == address);
                if let Some(register) = hit {
                    // The handler in ring 0, to its write and from its write.
                    bench.run(Ring::Kernel, before);
                    assert!(gate.trapped(1 << register, &mut session, &mut bench).unwrap());
                    bench.run(Ring::Kernel, after);
                }
                bench.run(Ring::User, 1);
            }
        }
        assert_eq!(
            raw(&mut session, &mut bench),
            [10 * 0x20, 10 * (0x20 + before + after)],
            "{model:?}"
        );
    }
}

#[test]
fn m14_debug_registers_as_the_manual_has_them() {
    let gate = AddressGate::new(&[(0x1000, Act::Start), (0x2000, Act::Stop), (0x3000, Act::Stop)]);
    let gate = gate.unwrap();
    // L0, L1, L2, R/W and LEN of an instruction.
    assert_eq!((gate.dr7(), gate.addresses()), (0x415, [0x1000, 0x2000, 0x3000, 0]));
    assert_eq!(gate.act(0xffff_0ff0), None);
    assert_eq!(gate.act(0xffff_0ff1), Some(Act::Start));
    assert_eq!(gate.act(0xffff_0ff4), Some(Act::Stop));
    // Bit 3 is of a register that is not enabled.
    assert_eq!(gate.act(0xffff_0ff8), None);
    assert_eq!(AddressGate::new(&[(0, Act::Start); 5]), Err(AddressError::TooMany(5)));
    let wrong = 0x8000_0000_0000;
    assert_eq!(AddressGate::new(&[(wrong, Act::Stop)]), Err(AddressError::NotCanonical(wrong)));
    assert!(AddressGate::new(&[(0xffff_8000_0000_0000, Act::Stop)]).is_ok());
}

/// A set whose last pass is over stays so, whatever the gate's task does: neither its next turn nor the address at which
/// counting starts lets it go on.
#[test]
fn m14_m6_a_gate_does_not_go_on_behind_the_last_pass() {
    use crate::counting::gate::Gate;
    use protocol::count::{GateAct, GatePoint};
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().in_rings(Rings::USER)], &known);
        let run = Run { passes: 1, ..Run::default() };
        let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
        let mut job = jobs::item(vec![], 0);
        job.gate = vec![GatePoint { task: 0, offset: 0x10, act: GateAct::Start }];
        let mut gate = Gate::of(&job).unwrap();
        gate.place(0x1000).unwrap();
        assert!(gate.trapped(1, &mut session, &mut bench).unwrap());
        bench.run(Ring::User, 100);
        gate.suspend(Some(0), &mut session, &mut bench).unwrap();
        session.next(&mut bench).unwrap();
        assert!(session.has_ended(), "{model:?}");
        gate.resume(Some(0), &mut session, &mut bench).unwrap();
        bench.run(Ring::User, 100);
        assert!(gate.trapped(1, &mut session, &mut bench).unwrap());
        bench.run(Ring::User, 100);
        assert!(!session.is_running(), "{model:?}");
        assert_eq!(raw(&mut session, &mut bench), [100], "{model:?}");
    }
}

/// The record says how often counting began and ended: an address at which nothing changes is neither.
#[test]
fn m14_a_gates_record_has_its_starts_and_stops() {
    use crate::counting::gate::Gate;
    use protocol::count::{GateAct, GatePoint};
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().in_rings(Rings::USER)], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        let mut job = jobs::item(vec![], 0);
        let point = |offset, act| GatePoint { task: 1, offset, act };
        job.gate = vec![point(0x10, GateAct::Start), point(0x20, GateAct::Stop)];
        let mut gate = Gate::of(&job).unwrap();
        gate.place(0x1000).unwrap();
        let (start, stop) = (1, 2);
        for dr6 in [stop, start, start, stop, start, stop, stop, start] {
            assert!(gate.trapped(dr6, &mut session, &mut bench).unwrap());
        }
        let result = gate.result();
        assert_eq!((result.task, result.starts, result.stops), (1, 3, 2), "{model:?}");
        assert!(!gate.trapped(0, &mut session, &mut bench).unwrap(), "{model:?}: another's");
    }
}
