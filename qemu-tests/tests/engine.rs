//! Options of the measuring engine, by what they change in counts of instructions.

use protocol::job::DRAIN_NOPS;
use qemu_tests::direct;

/// Under icount with shift 0 the TSC counts instructions.
#[test]
fn n1_each_option_changes_what_it_says_and_nothing_else() {
    let ran = direct(
        r#"
        [defaults]
        unroll = 10
        runs = 3
        warmup = 1
        [[snippet]]
        name = "plain"
        asm = "nop; nop"
        [[snippet]]
        name = "drained"
        asm = "nop; nop"
        drain-frontend = true
        [[snippet]]
        name = "late"
        asm = "nop; nop"
        late-init = "stc; cmc; stc"
        [[snippet]]
        name = "in registers"
        asm = "nop; nop"
        no-memory = true
        [[snippet]]
        name = "in registers, with a loop"
        asm = "nop; nop"
        no-memory = true
        loop = 5
        [[snippet]]
        name = "basic"
        asm = "nop; nop"
        difference = "empty"
        "#,
    );
    ran.ends_with(0);
    assert!(ran.medians().iter().all(|&(_, median)| median == 2.0), "{:?}", ran.medians());
    let small: Vec<i64> = ran.results().iter().map(|r| r.metrics[0].series[0].min).collect();
    let [plain, drained, late, in_registers, _, basic] = small[..] else { panic!("{small:?}") };
    assert_eq!(drained - plain, 1 + DRAIN_NOPS as i64);
    assert_eq!(late - plain, 3);
    // The same number of instructions after RDTSC: two MOVs to keep it, two to restore RAX and RDX, one more for RCX.
    assert_eq!(in_registers, plain + 1);
    assert_eq!(plain - basic, 20);
}

/// One-time init leaves a mark in memory that each run's init adds to; the run that reaches the limit faults.
#[test]
fn n1_one_time_init_runs_once_and_initial_warm_up_adds_runs() {
    let ran = direct(
        r#"
        [defaults]
        unroll = 1
        runs = 3
        warmup = 2
        initial-warmup = 7
        [[snippet]]
        name = "one run less"
        one-time-init = "add qword ptr [r14], 100"
        init = "inc qword ptr [r14]; cmp qword ptr [r14], 118; jb 2f; ud2; 2:"
        asm = "nop"
        [[snippet]]
        name = "last run"
        one-time-init = "add qword ptr [r14], 100"
        init = "inc qword ptr [r14]; cmp qword ptr [r14], 117; jb 2f; ud2; 2:"
        asm = "nop"
        [[snippet]]
        name = "at its offset"
        alignment-offset = 5
        difference = "empty"
        asm = "lea rcx, [rip - 7]; and ecx, 63; cmp ecx, 5; je 2f; ud2; 2:"
        "#,
    );
    ran.ends_with(1);
    assert_eq!(ran.results().len(), 2, "{:?}", ran.errors());
    // 100 by the one-time init, 7 + 2 + 3 runs of the small size, 2 + 3 of the large: the last run sees 117.
    let error = ran.errors()[0];
    assert_eq!(error.name.as_deref(), Some("last run"));
    let fault = error.fault.as_ref().unwrap();
    assert_eq!((fault.part.as_str(), fault.mnemonic.as_str()), ("init", "#UD"));
}
