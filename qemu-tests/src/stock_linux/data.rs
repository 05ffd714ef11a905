//! What `perf script` prints of accesses to memory, read: `union perf_mem_data_src` in the kernel's `include/uapi/linux/perf_event.h`.

use super::script::hexadecimal;

/// A level that is not told.
pub const UNKNOWN: &str = "unknown";

/// A sampled access.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Access {
    /// Address of the instruction.
    pub at: u64,
    /// Address of the data.
    pub data: u64,
    /// Where the data was and what other caches had of it, as barecount's reports have it.
    pub source: String,
    /// Cycles to the data; 0: not told.
    pub latency: u64,
}

/// Lines of `-F event,addr,data_src,weight,ip`: name of the event with a colon, address of the data, the source as a number and as a
/// text with spaces, cycles, address of the instruction. Of other lines, and of events that help others, nothing.
#[must_use]
pub fn accesses(output: &str) -> Vec<Access> {
    output.lines().filter_map(access).collect()
}

fn access(line: &str) -> Option<Access> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [event, data, source, .., latency, at] = words[..] else { return None };
    if event.contains("-aux") || !event.ends_with(':') {
        return None;
    }
    Some(Access {
        at: hexadecimal(at)?,
        data: hexadecimal(data)?,
        source: place(hexadecimal(source)?),
        latency: latency.parse().ok()?,
    })
}

/// What a source says.
fn place(source: u64) -> String {
    // No access at all.
    if source & 1 != 0 {
        return String::new();
    }
    let level = source >> 5 & 0x3fff;
    let (hit, miss) = (level & 2 != 0, level & 4 != 0);
    let level = match level >> 3 {
        0 if level & 1 != 0 => UNKNOWN,
        1 if hit => "L1",
        1 if miss => "not L1",
        2 if hit => "LFB",
        4 if hit => "L2",
        // Before Zen 4 also a cache of the same node: PERF_MEM_LVL_REM_CCE1.
        8 | 0x88 if hit => "L3",
        0x10 if hit => "memory",
        _ => return format!("level {level:#x}"),
    };
    let snoop = match source >> 19 & 0x1f {
        // Not available, and none.
        1 | 2 => "",
        4 => ", snoop hit",
        8 => ", snoop missed",
        0x10 => ", snoop hit modified",
        _ => ", snoop unknown",
    };
    format!("{level}{snoop}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_read_with_what_their_source_says() {
        let output = "cpu/mem-loads,ldlat=3/P:  800c0010  68100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A   4  80000043 \n\
            cpu/mem-loads-aux/:  0  5080021 |OP N/A|LVL N/A  0  80000043\nno sample\n";
        let [one] = &accesses(output)[..] else { panic!() };
        let expected =
            Access { at: 0x8000_0043, data: 0x800c_0010, source: "L1".into(), latency: 4 };
        assert_eq!(*one, expected);
        let of = |level: u64, snoop: u64| place(level << 5 | snoop << 19 | 2);
        assert_eq!(of(0x82, 4), "memory, snoop hit");
        assert_eq!(of(0x42, 8), "L3, snoop missed");
        assert_eq!(of(0x442, 1), "L3");
        assert_eq!(of(0xc, 1), "not L1");
        assert_eq!(of(0x20, 2), "level 0x20");
        assert_eq!((of(1, 1), place(0x508_0021)), ("unknown".to_string(), String::new()));
    }
}
