//! What `perf script` prints of samples, read.

/// A branch record.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Branch {
    /// Address of the branch.
    pub from: u64,
    /// Where it went.
    pub to: u64,
    /// Whether it was mispredicted.
    pub mispredicted: bool,
    /// Cycles from the branch before; 0: not told.
    pub cycles: u64,
}

/// Hexadecimal numbers, in order, of `words`; others are passed over.
pub(super) fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
}

/// Of `-F ip` and `-F addr,ip`: each line has its numbers; those whose last, the instruction's address, is in `code`.
#[must_use]
pub fn rows(output: &str, code: &core::ops::Range<u64>) -> Vec<Vec<u64>> {
    let row = |line: &str| line.split_whitespace().map(hexadecimal).collect::<Option<Vec<_>>>();
    let own = |row: &Vec<u64>| row.last().is_some_and(|at| code.contains(at));
    output.lines().filter_map(row).filter(own).collect()
}

/// Of `-F ip,brstack`: the instruction's address, and the branches, the newest first.
#[must_use]
pub fn branches(output: &str) -> Vec<(u64, Vec<Branch>)> {
    let sample = |line: &str| {
        let mut words = line.split_whitespace();
        let at = hexadecimal(words.next()?)?;
        Some((at, words.filter_map(branch).collect()))
    };
    output.lines().filter_map(sample).collect()
}

/// `0x401000/0x401010/M/-/-/12`: from, to, whether mispredicted (P: not), transaction, abort, cycles.
fn branch(word: &str) -> Option<Branch> {
    let fields: Vec<&str> = word.split('/').collect();
    let [from, to, predicted, _, _, cycles, ..] = fields[..] else { return None };
    Some(Branch {
        from: hexadecimal(from)?,
        to: hexadecimal(to)?,
        mispredicted: predicted == "M",
        cycles: cycles.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_the_code() {
        let output = "  800c0010  80000043\n ffffffff81000000\n  80000047 \nWARNING: 80000043\n";
        assert_eq!(rows(output, &(0x8000_0000..0x8000_0047)), [vec![0x800c_0010, 0x8000_0043]]);
    }

    #[test]
    fn branches_are_read_with_what_became_of_them() {
        let output = " 80000043  0x80000050/0x80000040/P/-/-/4 0x0/0x1/M/-/-/12 \n";
        let [(at, all)] = &branches(output)[..] else { panic!() };
        assert_eq!((*at, all.len()), (0x8000_0043, 2));
        let second = Branch { from: 0, to: 1, mispredicted: true, cycles: 12 };
        assert_eq!((all[0].mispredicted, all[0].cycles, all[1]), (false, 4, second));
    }
}
