//! Forms that are measured beside others: what these take is subtracted, so that each figure is of one instruction.

use pmu_model::Model;
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::forms::{FormRow, per_instruction, rows};
use xtask::machine::Given;

fn run(forms: &[&str]) -> Ran {
    let forms: Vec<String> = forms.iter().map(|form| format!("{form:?}")).collect();
    let job = format!(
        "name = \"forms\"\n[[characterise]]\nforms = [{}]\nevents = [\"cycles\", \"instructions\"]\n",
        forms.join(", ")
    );
    Guest { pmu: Given::Emulated(Model::Skylake), ..Guest::new(Boot::Direct, &job) }.run()
}

/// Under the emulated PMU a cycle is an instruction, so each takes one.
fn one_each(rows: &[FormRow], forms: &[&str], bound: Option<&str>) {
    for form in forms {
        let row = rows.iter().find(|row| row.form == *form).unwrap_or_else(|| panic!("{form}"));
        let one = row.throughput.as_ref().unwrap();
        assert_eq!((one.value, one.bound), (1.0, bound), "{form}: {one:?}");
        let counted = one.events.iter().find(|(name, _)| name == "instructions").unwrap();
        assert!((counted.1 - 1.0).abs() < 1e-9, "{form}: {one:?}");
    }
}

#[test]
fn d2_forms_that_move_the_x87_stack_take_one_instruction_without_their_partners() {
    let moving = [
        "fld m64",
        "fld st",
        "fld1",
        "fild m32",
        "fstp m64",
        "fstp st",
        "fistp m16",
        "faddp st, st0",
        "fmulp st, st0",
        "fcompp",
        "fucomip st0, st",
    ];
    let alone = ["fxch st", "fincstp", "ffree st"];
    let ran = run(&[&moving[..], &alone[..]].concat());
    let rows = rows(&per_instruction(&ran.ends_with(0).report));
    one_each(&rows, &moving, Some("at least"));
    one_each(&rows, &alone, None);
    let latency = |form: &str| {
        let row = rows.iter().find(|row| row.form == form).unwrap();
        row.latency.iter().map(|one| (one.measured, one.at_most)).collect::<Vec<_>>()
    };
    // A load and the store that leads back; what pops gets its other operand anew.
    assert_eq!(latency("fld m64"), [(2.0, true)]);
    assert_eq!(latency("faddp st, st0"), [(2.0, false)]);
    assert_eq!(latency("fxch st"), [(1.0, false)]);
}

#[test]
fn d2_gathers_take_one_instruction_without_their_masks() {
    let forms = [
        "vgatherdps ymm, vm32y, ymm",
        "vgatherqps xmm, vm64y, xmm",
        "vpgatherdq ymm, vm32x, ymm",
        "vpgatherqq xmm, vm64x, xmm",
    ];
    let ran = run(&forms);
    let rows = rows(&per_instruction(&ran.ends_with(0).report));
    one_each(&rows, &forms, Some("at least"));
    for form in forms {
        let row = rows.iter().find(|row| row.form == form).unwrap();
        let from: Vec<_> = row.latency.iter().map(|one| one.from.as_str()).collect();
        assert_eq!(from, ["1", "2", "3", "address"], "{form}");
    }
}

/// The emulated machine has no AVX-512 and no AMX: CPUID says so, and nothing is executed.
#[test]
fn d2_forms_of_evex_scatters_and_tiles_are_skipped_where_the_processor_has_none() {
    let ran = run(&[
        "vaddpd zmm {k}{z}, zmm, m64 {1to8}",
        "vscatterdps vm32z {k}, zmm",
        "tdpbssd tmm, tmm, tmm",
    ]);
    let report = &ran.ends_with(0).report;
    let skipped: Vec<_> = report.errors().collect();
    assert!(skipped.len() >= 3, "{skipped:?}");
    for error in skipped {
        let is = |part| error.text.contains(part);
        assert!(is("AVX512F") || is("AMX"), "{error:?}");
    }
    let ran = |row: &FormRow| row.form.contains("{k}") || row.form.contains("tmm");
    assert!(!rows(report).iter().any(ran));
}

#[test]
fn d2_branches_are_measured_taken_not_taken_and_in_pairs() {
    let alone = ["jmp rel8", "jmp rel32", "jrcxz rel8 {taken}", "jrcxz rel8 {not-taken}"];
    let beside = ["jmp r64", "jmp m64", "loop rel8 {taken}", "loop rel8 {not-taken}"];
    let flags =
        ["je rel8 {taken}", "je rel8 {not-taken}", "jo rel32 {taken}", "jg rel32 {not-taken}"];
    let pairs = ["call rel32", "call r64", "ret"];
    let ran = run(&[&alone[..], &beside[..], &flags[..], &pairs[..]].concat());
    let rows = rows(&per_instruction(&ran.ends_with(0).report));
    one_each(&rows, &alone, None);
    one_each(&rows, &beside, Some("at least"));
    let of = |form: &str| {
        let row = rows.iter().find(|row| row.form == form).unwrap();
        let one = row.throughput.as_ref().unwrap();
        (one.value, one.bound)
    };
    // One comparison for 16.
    for form in flags {
        assert_eq!(of(form), (17.0 / 16.0, None), "{form}");
    }
    // A call, a return and a jump over it; a call by register has its address loaded.
    assert_eq!(of("call rel32"), (3.0, Some("at most")));
    assert_eq!(of("ret"), (3.0, Some("at most")));
    assert_eq!(of("call r64"), (4.0, Some("at most")));
}

/// Each writes what is there: the firmware finds no register changed, and the run goes on.
#[test]
fn d2_privileged_forms_change_nothing() {
    let forms = [
        "mov r64, cr0",
        "mov cr0, r64",
        "mov cr2, r64",
        "mov cr3, r64",
        "mov cr4, r64",
        "mov cr8, r64",
        "mov r64, dr6",
        "mov dr0, r64",
        "mov dr7, r64",
        "rdmsr",
        "wrmsr",
        "rdpmc",
        "xgetbv",
        "xsetbv",
        "cli",
        "sti",
        "clts",
        "invlpg m",
        "swapgs",
        "lgdt m",
        "lidt m",
        "lldt r16",
        "lmsw r16",
    ];
    let ran = run(&[&forms[..], &["inc r64"]].concat());
    let report = &ran.ends_with(0).report;
    let rows = rows(&per_instruction(report));
    for form in forms {
        let row = rows.iter().find(|row| row.form == form).unwrap_or_else(|| panic!("{form}"));
        let one = row.throughput.as_ref().unwrap();
        let counted = one.events.iter().find(|(name, _)| name == "instructions").unwrap();
        assert!((counted.1 - 1.0).abs() < 1e-9, "{form}: {one:?}");
        assert!(row.latency.is_empty(), "{form}");
    }
    for result in report.results() {
        assert!(result.restored.is_empty(), "{}: {:?}", result.name, result.restored);
    }
}
