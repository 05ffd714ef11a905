//! The permission maps: APM vol. 2, 15.10.1 for ports and 15.11 for model-specific registers.

/// Bytes of the map of registers: two bits each, read and then write, in three ranges of 0x2000 registers.
pub const MSR_BYTES: usize = 0x2000;
/// Bytes of the map of ports, a bit each: after the last port are three bits more for accesses that go beyond it.
pub const IO_BYTES: usize = 0x3000;

/// Where the bits of a register are: the byte, and the bit of reads in it, which that of writes stands after. `None` of
/// those outside the ranges, which are always intercepted.
#[must_use]
pub const fn msr_place(msr: u32) -> Option<(usize, u32)> {
    let (range, base) = match msr {
        0..=0x1fff => (0, 0),
        0xc000_0000..=0xc000_1fff => (1, 0xc000_0000),
        0xc001_0000..=0xc001_1fff => (2, 0xc001_0000),
        _ => return None,
    };
    let index = range * 0x2000 + (msr - base) as usize;
    Some((index / 4, 2 * (index as u32 % 4)))
}

/// Whether RDMSR or WRMSR of `msr` is intercepted by the map that `byte` reads.
#[must_use]
pub fn msr_is_intercepted(msr: u32, writes: bool, byte: impl FnOnce(usize) -> u8) -> bool {
    msr_place(msr).is_none_or(|(at, bit)| byte(at) >> (bit + u32::from(writes)) & 1 != 0)
}

/// Whether the access to ports is intercepted of which the first exit information says `info`: by the map that `byte` reads.
#[must_use]
pub fn port_is_intercepted(info: u64, mut byte: impl FnMut(usize) -> u8) -> bool {
    let (port, bytes) = port(info);
    let first = usize::from(port);
    (first..first + bytes).any(|port| byte(port / 8) >> (port % 8) & 1 != 0)
}

/// The first port of an access, and how many: APM vol. 2, figure 15-2.
#[must_use]
pub const fn port(info: u64) -> (u16, usize) {
    let bytes = (info >> 4 & 7) as usize;
    ((info >> 16) as u16, if bytes == 0 { 1 } else { bytes })
}

/// What either map intercepts.
pub fn merge(own: &[u64], guests: &[u64], merged: &mut [u64]) {
    for (place, (own, guests)) in merged.iter_mut().zip(own.iter().zip(guests)) {
        *place = own | guests;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn registers_are_where_the_manual_has_them() {
        // APM vol. 2, 15.11: the ranges begin at bytes 0, 0x800 and 0x1000.
        assert_eq!(msr_place(0), Some((0, 0)));
        assert_eq!(msr_place(0x1fff), Some((0x7ff, 6)));
        assert_eq!(msr_place(0xc000_0080), Some((0x820, 0)));
        assert_eq!(msr_place(0xc001_0201), Some((0x1080, 2)));
        for outside in [0x2000, 0xbfff_ffff, 0xc000_2000, 0xc001_2000, u32::MAX] {
            assert_eq!(msr_place(outside), None);
            assert!(msr_is_intercepted(outside, false, |_| panic!("it has no bit")));
        }
    }

    #[test]
    fn reads_and_writes_have_a_bit_each() {
        let map = |at| if at == 0x820 { 0b10 } else { 0 };
        assert!(msr_is_intercepted(0xc000_0080, true, map));
        assert!(!msr_is_intercepted(0xc000_0080, false, map));
        assert!(!msr_is_intercepted(0xc000_0081, true, map));
    }

    #[test]
    fn an_access_is_intercepted_by_any_of_its_ports() {
        // OUT of 4 bytes at port 0xcf8, and of one at 0xffff.
        let (long, last) = (0xcf8 << 16 | 1 << 6, 0xffff << 16 | 1 << 4);
        assert_eq!((port(long), port(last)), ((0xcf8, 4), (0xffff, 1)));
        let only =
            |wanted: usize| move |at: usize| if at == wanted / 8 { 1 << (wanted % 8) } else { 0 };
        assert!(port_is_intercepted(long, only(0xcfb)));
        assert!(!port_is_intercepted(long, only(0xcfc)));
        assert!(!port_is_intercepted(long, only(0xcf7)));
        assert!(port_is_intercepted(0xffff << 16 | 1 << 5, only(0x1_0000)), "beyond the last port");
    }

    proptest! {
        #[test]
        fn what_either_intercepts_is_intercepted(
            own in prop::collection::vec(any::<u64>(), 32), guests in prop::collection::vec(any::<u64>(), 32),
            msr in 0u32..1024, writes: bool,
        ) {
            let mut merged = vec![0; 32];
            merge(&own, &guests, &mut merged);
            let is = |map: &[u64]| msr_is_intercepted(msr, writes, |at| map[at / 8].to_le_bytes()[at % 8]);
            prop_assert_eq!(is(&merged), is(&own) || is(&guests));
        }
    }
}
