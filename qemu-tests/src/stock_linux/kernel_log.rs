//! What the kernel has to complain about: `dmesg -r`, whose lines begin with their level.

/// KERN_WARNING: this and whatever is below it is a complaint.
const WARNING: u32 = 4;

/// Parts of the complaints that the kernel has on the same machine without the hypervisor, if its processor is called the same.
pub const USUAL: [&str; 7] = [
    // QEMU's machine has no such region.
    "fail to add MMCONFIG information",
    // Of each processor that is named as one that has the fault.
    "RETBleed: WARNING",
    "Speculative Return Stack Overflow",
    // AMD's with several processors, as QEMU does not say that its TSC is invariant: tsc.c, unsynchronized_tsc().
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
        let is_usual = is_count(text) || USUAL.iter().any(|usual| text.contains(usual));
        (level <= WARNING && !is_usual).then_some(text)
    };
    log.lines().filter_map(complaint).collect()
}

/// Whether it is the rest of the line that counts the processors up as they start: " #2 #3".
fn is_count(text: &str) -> bool {
    let is_number =
        |word: &str| word.strip_prefix('#').is_some_and(|word| word.parse::<u32>().is_ok());
    !text.is_empty() && text.split_whitespace().all(is_number)
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

    #[test]
    fn what_the_kernel_says_on_any_such_machine_is_no_complaint() {
        let log = "<4>[ 2.7]  #2 #3\n<4>[ 2.8] CPU #2 is lost\n<3>[ 1.5] RETBleed: WARNING: Spectre\n<4>[ 3.0] \n";
        assert_eq!(complaints(log), ["CPU #2 is lost", ""]);
    }
}
