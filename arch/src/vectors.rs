//! Which interrupt vector is whose.

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

/// Those of tasks that ring 3 may call.
pub(crate) const OF_TASKS: [u8; 5] =
    [EXIT_VECTOR, YIELD_VECTOR, READ_VECTOR, MARK_VECTOR, WAIT_VECTOR];
