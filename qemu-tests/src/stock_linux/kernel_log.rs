//! What the kernel has to complain about: `dmesg -r`, whose lines begin with their level.

/// KERN_WARNING: this and whatever is below it is a complaint.
const WARNING: u32 = 4;

/// Parts of the complaints that have another cause than the PMU.
const USUAL: [&str; 8] = [
    // QEMU's machine has no such region.
    "fail to add MMCONFIG information",
    // The hypervisor needs the HPET, and hides it.
    "hpet_acpi_add: no address or irqs",
    // Of each processor that is named as one that has the fault.
    "RETBleed: WARNING",
    "Speculative Return Stack Overflow",
    // AMD's with several processors, as QEMU's does not say that its TSC is invariant: tsc.c, unsynchronized_tsc().
    "Unstable clock detected",
    "If you want to keep using the local clock",
    "  \"trace_clock=local\"",
    "on the kernel command line",
];

/// Every complaint but the usual ones, without level and time.
#[must_use]
pub fn complaints(log: &str) -> Vec<&str> {
    let complaint = |line| {
        let (level, text) = message(line)?;
        (level <= WARNING && !USUAL.iter().any(|usual| text.contains(usual))).then_some(text)
    };
    log.lines().filter_map(complaint).collect()
}

/// To how many samples a second the kernel has lowered what may be asked for, if it has: "interrupt took too long". It does
/// on slow machines, and tells it as a matter of course.
#[must_use]
pub fn lowest_sample_rate(log: &str) -> Option<u64> {
    let rate = |line: &str| {
        line.split_once("lowering kernel.perf_event_max_sample_rate to ")?.1.trim().parse().ok()
    };
    log.lines().filter_map(rate).min()
}

/// Level and text of a line `<6>[    1.234567] text`. The lowest three bits of the number are the level.
fn message(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.strip_prefix('<')?.split_once('>')?;
    let text = rest.split_once("] ").map_or(rest, |(_, text)| text);
    Some((number.parse::<u32>().ok()? & 7, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_the_rates_is_found() {
        let line = |rate| {
            format!(
                "<6>[ 5.1] perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate to {rate}\n"
            )
        };
        assert_eq!(lowest_sample_rate(&(line(79_750) + &line(63_250))), Some(63_250));
        assert_eq!(lowest_sample_rate("<6>[ 5.1] perf\n"), None);
    }

    #[test]
    fn a_complaint_is_a_line_of_level_4_or_below() {
        let log = "<6>[    0.000000] Linux\n<4>[    1.5] one\n<3>[   12.25] two\n<5>[    3.0] note\n<12>[    4.0] user's\nother\n";
        assert_eq!(complaints(log), ["one", "two", "user's"]);
    }
}
