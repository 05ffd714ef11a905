use super::*;
use core::mem::offset_of;

#[test]
fn a_call_is_a_nop_that_names_its_command() {
    use Command::*;
    for wanted in [Who, Region, Mode, Enter, Exit] {
        assert_eq!(command(&call(wanted)), Some(wanted));
    }
    // NOP DWORD [RAX+RAX+0x62637004].
    assert_eq!(call(Exit), [0x0f, 0x1f, 0x84, 0x00, 0x04, 0x70, 0x63, 0x62]);
}

#[test]
fn other_nops_are_no_calls() {
    assert_eq!(command(&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), None);
    assert_eq!(command(&[0x0f, 0x1f, 0x84, 0, 5, 0x70, 0x63, 0x62]), None);
    assert_eq!(command(&call(Command::Who)[..7]), None);
}

#[test]
fn the_mailbox_is_a_page_whose_fields_are_where_both_sides_have_them() {
    assert_eq!(size_of::<Mailbox>(), 4096);
    assert_eq!(offset_of!(Mailbox, limits), 160);
    assert_eq!(offset_of!(Mailbox, counts), 320);
    assert_eq!(offset_of!(Mailbox, records), 832);
}
