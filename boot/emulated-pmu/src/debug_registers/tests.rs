use super::*;
use proptest::prelude::*;

fn registers(addresses: [u64; 4], dr7: u64) -> DebugRegisters {
    DebugRegisters::new(addresses, DR6_IDLE, dr7)
}

#[test]
fn m14_fixed_bits_stay_and_reserved_ones_fault() {
    let mut all = registers([0; 4], 0);
    all.write(6, 0xffff_ffff).unwrap();
    all.write(7, 0xffff_ffff).unwrap();
    assert_eq!((all.read(6), all.read(7)), (0xffff_efff, 0xffff_27ff));
    all.write(4, 0).unwrap();
    all.write(5, 0).unwrap();
    assert_eq!((all.read(6), all.read(7)), (DR6_IDLE, DR7_ONE));
    assert_eq!(all.write(7, 1 << 32), Err(ReservedBits));
    assert_eq!(all.write(0, 1 << 32), Ok(()));
    assert_eq!(all.read(0), 1 << 32);
}

#[test]
fn m14_an_exception_replaces_hits_adds_the_rest_and_ends_general_detection() {
    let mut all = registers([0; 4], 0x2400);
    all.write(6, 0x400a).unwrap();
    all.raise(0x1);
    assert_eq!((all.read(6), all.read(7)), (DR6_IDLE | 0x4001, 0x400));
}

#[test]
fn m14_breakpoints_meet_what_they_are_on() {
    // DR0 on an instruction; DR1, two bytes written; DR2, eight bytes, not enabled; DR3, four bytes, any access.
    let dr7 = 0x85 | 0b0101 << 20 | 0b1011 << 24 | 0b1111 << 28;
    let all = registers([0x1000, 0x2003, 0x2000, 0x3002], dr7);
    assert_eq!(all.on_instruction(0x1000), 1);
    assert_eq!(all.on_instruction(0x2003), 0);
    // Their lower bits are ignored: 0x2002 and 0x2003, 0x3000 to 0x3003.
    let stores = [0x1ffa, 0x1ffb, 0x2003, 0x2004, 0x2ff8, 0x2ff9, 0x3003, 0x3004];
    assert_eq!(stores.map(|at| all.on_store(at)), [0, 2, 2, 0, 0, 8, 8, 0]);
    assert_eq!((all.room(), all.watches_data()), (1, true));
}

#[test]
fn m14_own_breakpoints_take_the_free_places() {
    let dr7 = 0x11 | 0b1101 << 16;
    let all = registers([0x2003, 9, 0x1000, 9], dr7);
    let placed = all.place(&[0x4000, 0x5000], Which::All).unwrap();
    assert_eq!(placed.addresses, [0x2000, 0x4000, 0x1000, 0x5000]);
    assert_eq!(placed.dr7, 0x55 | 0b1101 << 16);
    assert_eq!(all.place(&[1, 2, 3], Which::All), None);
    // A trap comes before what is on the next instruction; the guest's breakpoint before the hypervisor's.
    let happened = |dr6| placed.happened(DR6_IDLE | dr6);
    assert_eq!(happened(0b1111), Happened { own: false, bits: 1 });
    assert_eq!(happened(0b0110), Happened { own: false, bits: 4 });
    assert_eq!(happened(0b1000), Happened { own: true, bits: 0 });
    assert_eq!(happened(SINGLE_STEP | 0b1110), Happened { own: false, bits: SINGLE_STEP });
    assert_eq!(happened(0), Happened::default());
    let data = all.place(&[1, 2, 3], Which::Data).unwrap();
    assert_eq!(data.addresses, [0x2000, 1, 2, 3]);
    // Shown by the processor though nobody enabled it.
    assert_eq!(all.place(&[], Which::Data).unwrap().happened(0b0100), Happened::default());
}

proptest! {
    #[test]
    fn m14_nothing_of_the_guests_is_lost_in_placing(
        addresses: [u64; 4],
        dr7: u32,
        own in proptest::collection::vec(any::<u64>(), 0..5),
    ) {
        let all = registers(addresses, dr7.into());
        let placed = all.place(&own, Which::All);
        prop_assert_eq!(placed.is_some(), own.len() <= all.room());
        if let Some(placed) = placed {
            let again = registers(placed.addresses, placed.dr7);
            for (number, address) in addresses.into_iter().enumerate() {
                if dr7 >> (2 * number) & 3 != 0 && all.condition(number) == Condition::Execute {
                    prop_assert!(again.on_instruction(address) >> number & 1 != 0);
                }
            }
            prop_assert_eq!(placed.own.count_ones() as usize, own.len());
            prop_assert_eq!(again.room(), all.room() - own.len());
        }
    }
}
