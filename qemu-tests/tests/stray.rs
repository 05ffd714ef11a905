//! Interrupts that nothing here requested.

use protocol::record::ErrorCode;
use qemu_tests::direct;

/// The thermal sensor's interrupt goes to the vector that the machine's firmware has left in the local APIC, if somebody unmasks its
/// entry. Here the snippet sends that vector to its own processor: 0xfa, Linux' vector for it. The code goes on, its figures are spoilt.
#[test]
fn x1_an_interrupt_at_a_vector_that_nobody_took_is_named_and_the_run_goes_on() {
    let ran = direct(
        r#"
        [defaults]
        unroll = 1
        runs = 3
        [[snippet]]
        name = "thermal"
        asm = "movabs rax, 0xffff8000fee00300; mov dword ptr [rax], 0x400fa; sti; nop; nop; cli"
        [[snippet]]
        name = "next"
        asm = "imul rax, rax"
        unroll = 100
        "#,
    );
    let errors = ran.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(
        (errors[0].code, errors[0].name.as_deref()),
        (ErrorCode::StrayInterrupt, Some("thermal"))
    );
    let text = &errors[0].text;
    assert!(text.contains("a stray interrupt of vector 250 came at 0x"), "{text}");
    assert_eq!(ran.medians(), [("next", 1.0)]);
}
