//! Repeating a run that something came into which nothing can keep out: a system management interrupt.

/// What came of a run and its repetitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Repeated<T> {
    /// The result of the last one, which counts.
    pub result: T,
    /// What came into that one all the same.
    pub came: u64,
    /// How many were made before it, which do not count.
    pub repeats: u32,
}

/// Makes a run by `run`, and again while `count` moves meanwhile, at most `repeats` times more. `count` is asked through
/// the machine, as the run is made with it.
///
/// # Errors
/// That of the run.
pub fn repeat_on_smi<M, T, E>(
    machine: &mut M,
    repeats: u32,
    count: impl Fn(&M) -> u64,
    mut run: impl FnMut(&mut M) -> Result<T, E>,
) -> Result<Repeated<T>, E> {
    let mut made = 0;
    loop {
        let before = count(machine);
        let result = run(machine)?;
        let came = count(machine).wrapping_sub(before);
        if came == 0 || made == repeats {
            return Ok(Repeated { result, came, repeats: made });
        }
        made += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs so far, and interrupts so far.
    struct Made(u32, u64);

    /// Interrupts come into the first `disturbed` runs, two into each.
    fn repeated(repeats: u32, disturbed: u32) -> Repeated<u32> {
        let run = |made: &mut Made| {
            made.0 += 1;
            made.1 += if made.0 <= disturbed { 2 } else { 0 };
            Ok::<_, ()>(made.0)
        };
        repeat_on_smi(&mut Made(0, 7), repeats, |made| made.1, run).unwrap()
    }

    #[test]
    fn x2_a_run_is_repeated_until_nothing_comes_or_as_often_as_allowed() {
        assert_eq!(repeated(3, 0), Repeated { result: 1, came: 0, repeats: 0 });
        assert_eq!(repeated(3, 2), Repeated { result: 3, came: 0, repeats: 2 });
        assert_eq!(repeated(3, 9), Repeated { result: 4, came: 2, repeats: 3 });
        assert_eq!(repeated(0, 9), Repeated { result: 1, came: 2, repeats: 0 });
        let failing = |made: &mut Made| Err::<(), _>(made.0);
        assert_eq!(repeat_on_smi(&mut Made(5, 0), 3, |made| made.1, failing), Err(5));
    }
}
