//! Forms of 32-bit code, in ring 0 and ring 3. Under the emulated PMU a cycle is an instruction, so that the figures are numbers of
//! instructions in the generated code.

use pmu_model::Model;
use qemu_tests::Guest;
use xtask::cli::Boot;
use xtask::forms::{FormRow, per_instruction, rows};
use xtask::machine::Given;

/// Ring 0: registers, memory, flags, implicit registers, MMX, vectors, x87, and what only 32-bit code has.
const RING_0: [&str; 30] = [
    "imul r32, r32",
    "adc r32, r32",
    "add r8, r8",
    "mov r32, m32",
    "mov m32, r32",
    "add r32, m32",
    "lea r32, m",
    "inc r32",
    "setc r8",
    "test r32, r32",
    "mul r32",
    "div r32",
    "idiv r8",
    "shl r32, cl",
    "cmpxchg8b m64",
    "mulx r32, r32, r32",
    "aaa",
    "aam imm8",
    "aad imm8",
    "daa",
    "arpl r16, r16",
    "bound r32, m",
    "pushad",
    "paddb mm, mm",
    "pmovmskb r32, mm",
    "addps xmm, m128",
    "cvtsi2sd xmm, r32",
    "vpaddd ymm, ymm, ymm",
    "fadd st, st0",
    "fxch st",
];

/// Measured beside others.
const BESIDE: [&str; 5] =
    ["fld m64", "fistp m32", "faddp st, st0", "vgatherdps ymm, vm32y, ymm", "loop rel8 {taken}"];

/// Of ring 0, and alone.
const PRIVILEGED: [&str; 7] =
    ["mov r32, cr0", "mov r32, dr6", "rdmsr", "wrmsr", "cli", "invlpg m", "lldt r16"];

const RING_3: [&str; 7] =
    ["sub r32, r32", "das", "aas", "mov r16, m16", "paddd xmm, xmm", "movd xmm, r32", "jmp rel8"];

fn job() -> String {
    let quoted = |forms: &[&str]| {
        forms.iter().map(|form| format!("{form:?}")).collect::<Vec<_>>().join(", ")
    };
    let mut job = format!(
        "name = \"forms of 32-bit code\"\n[defaults]\nevents = [\"cycles\", \"instructions\"]\n\
         [[characterise]]\nbits = 32\nforms = [{}]\n\
         [[characterise]]\nforms = [\"imul r64, r64\", \"je rel8 {{taken}} [32-bit]\"]\n",
        quoted(&[&RING_0[..], &BESIDE[..], &PRIVILEGED[..]].concat())
    );
    for form in RING_3 {
        let latency = if form.starts_with('j') { "" } else { "latency = FORM\n" };
        let text = format!(
            "[[snippet]]\nbits = 32\nmachine = {{ ring = 3 }}\nthroughput = FORM\n{latency}"
        );
        job += &text.replace("FORM", &format!("{form:?}"));
    }
    job
}

fn row<'a>(rows: &'a [FormRow], form: &str) -> &'a FormRow {
    rows.iter().find(|row| row.form == form).unwrap_or_else(|| panic!("{form}"))
}

/// Every instruction takes one: the form's, what leads back, and what is written anew.
#[test]
fn n3_forms_of_32_bit_code_take_the_instructions_that_they_are_made_of() {
    let ran = Guest { pmu: Given::Emulated(Model::Skylake), ..Guest::new(Boot::Direct, &job()) };
    let ran = ran.run();
    let report = &ran.ends_with(0).report;
    assert_eq!(report.errors().count(), 0, "{:?}", report.errors().collect::<Vec<_>>());
    let rows = rows(&per_instruction(report));
    for form in PRIVILEGED {
        let row = row(&rows, &format!("{form} [32-bit]"));
        let one = row.throughput.as_ref().unwrap_or_else(|| panic!("{form}"));
        let counted = one.events.iter().find(|(name, _)| name == "instructions").unwrap();
        assert!((counted.1 - 1.0).abs() < 1e-9 && row.latency.is_empty(), "{form}: {one:?}");
    }
    for form in [&RING_0[..], &RING_3[..]].concat() {
        let row = row(&rows, &format!("{form} [32-bit]"));
        let one = row.throughput.as_ref().unwrap_or_else(|| panic!("{form}"));
        assert_eq!(one.measured, 1.0 + one.breaking.len() as f64, "{form}: {one:?}");
        assert_eq!((one.value, one.bound), (one.measured, None), "{form}: {one:?}");
    }
    for form in BESIDE {
        let row = row(&rows, &format!("{form} [32-bit]"));
        let one = row.throughput.as_ref().unwrap_or_else(|| panic!("{form}"));
        assert_eq!(one.measured, 1.0 + one.with.len() as f64, "{form}: {one:?}");
        assert_eq!((one.value, one.bound), (1.0, Some("at least")), "{form}: {one:?}");
    }
    let mut pairs = 0;
    for row in rows.iter().filter(|row| row.form.ends_with("[32-bit]")) {
        for one in &row.latency {
            let (back, breaking) = (one.back.len() as f64, one.breaking.len() as f64);
            assert_eq!(one.measured, 1.0 + back + breaking, "{}: {one:?}", row.form);
            assert_eq!(one.value, 1.0 + breaking, "{}: {one:?}", row.form);
            pairs += 1;
        }
    }
    assert!(pairs > 80, "{pairs}");
    // One comparison for 16 branches.
    let branch = row(&rows, "je rel8 {taken} [32-bit]").throughput.as_ref().unwrap();
    assert_eq!(branch.value, 17.0 / 16.0);
    // 64-bit code in the same job stays apart.
    let wide = row(&rows, "imul r64, r64");
    assert!(wide.latency.iter().flat_map(|one| &one.back).all(|form| form == "movsxd r64, r32"));
    let in_32_bit = row(&rows, "imul r32, r32 [32-bit]");
    let figures = |row: &FormRow| row.latency.iter().map(|one| one.value).collect::<Vec<_>>();
    assert_eq!((figures(wide), figures(in_32_bit)), (vec![1.0, 2.0], vec![1.0, 2.0]));
    for result in report.results() {
        assert!(result.restored.is_empty(), "{}: {:?}", result.name, result.restored);
    }
}
