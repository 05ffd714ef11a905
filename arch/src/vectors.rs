//! Interrupt vectors that more than one room names.

/// First vector that devices may use; the ones below are exceptions (SDM vol. 3, 6.2).
pub const FIRST_DEVICE_VECTOR: u8 = 32;
/// Vector of the local APIC's spurious interrupt: the low four bits are 1 on all processors.
pub const SPURIOUS_VECTOR: u8 = 0xff;
/// Vector by which one processor tells another that there is work for it.
pub const CALL_VECTOR: u8 = 0xf1;
/// Vector that the local APIC's self-test sends to itself.
pub const SELF_TEST_VECTOR: u8 = 0xf0;

/// Software interrupt by which a task ends.
pub const EXIT_VECTOR: u8 = 0x82;
/// Software interrupt by which a task lets others go first.
pub const YIELD_VECTOR: u8 = 0x83;
/// Software interrupt by which a task reads what was counted of it, and continues.
pub const READ_VECTOR: u8 = 0x85;
/// Software interrupt by which a task says how far it is, and goes on.
pub const MARK_VECTOR: u8 = 0x86;
/// Software interrupt by which a task waits for somebody at the console.
pub const WAIT_VECTOR: u8 = 0x88;

/// Vector by which code of ring 3 comes back. Not 0x80: by that one compiled code asks Linux, which is a fault here.
pub const LEAVE_VECTOR: u8 = 0x88;

/// Vectors by which a measured snippet of ring 3 ends its init code, its body and its teardown code. Whoever emits it says
/// where they lead ([`crate::interrupts::set_entry`]).
pub const SNIPPET_VECTORS: [u8; 3] = [0x85, 0x86, 0x87];

/// Vector of the software interrupt of `Ring3Code::Interrupts`.
pub const USER_VECTOR: u8 = 0x81;

/// Those that ring 3 may call.
pub(crate) const OF_RING_3: [u8; 10] = {
    let [init, body, teardown] = SNIPPET_VECTORS;
    let [exit, yields, read, mark] = [EXIT_VECTOR, YIELD_VECTOR, READ_VECTOR, MARK_VECTOR];
    [exit, yields, read, mark, WAIT_VECTOR, LEAVE_VECTOR, USER_VECTOR, init, body, teardown]
};
