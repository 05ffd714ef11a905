//! What the DMAR table says of the local APICs: Intel, "Virtualization Technology for Directed I/O" 4.1, 8.1.

/// Where the flags are, and the one by which the machine's firmware asks that x2APIC mode stays off: it cannot deal with it in system
/// management interrupts.
const FLAGS: usize = 37;
const X2APIC_OPT_OUT: u8 = 1 << 1;

/// Whether the machine's firmware wants no x2APIC mode. The table begins with its header.
#[must_use]
pub fn opts_out_of_x2apic(dmar: &[u8]) -> bool {
    dmar.get(FLAGS).is_some_and(|flags| flags & X2APIC_OPT_OUT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_the_flag_is_the_second_one() {
        let mut dmar = [0xff; 48];
        for (flags, out) in [(0, false), (1, false), (2, true), (3, true), (4, false)] {
            dmar[FLAGS] = flags;
            assert_eq!(opts_out_of_x2apic(&dmar), out, "{flags}");
        }
        assert!(!opts_out_of_x2apic(&[0xff; FLAGS]));
    }
}
