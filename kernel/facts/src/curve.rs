//! A load's time over the size of the working set.

use crate::probe::Probe;
use alloc::vec::Vec;
use protocol::record::CurvePoint;

/// The least working set.
const LEAST: u64 = 1 << 10;

/// Sizes from 1 KiB to `most`, two for each power of two.
pub fn sizes(most: u64) -> impl Iterator<Item = u64> {
    (0..).map(|step| (LEAST << (step / 2)) / 2 * (2 + step % 2)).take_while(move |it| *it <= most)
}

/// The curve, by lines of so many bytes. `hit`: what a hit of the first level takes, in tenths.
pub fn measure(probe: &mut impl Probe, line: u64, hit: u64) -> Vec<CurvePoint> {
    let most = probe.bytes();
    let point = |bytes| {
        let tenths = hit + probe.walk_tenths(bytes, line);
        probe.beat();
        CurvePoint { bytes, tenths }
    };
    let sizes: Vec<u64> = sizes(most).collect();
    sizes.into_iter().map(point).collect()
}
