use super::*;
use iced_x86::{Decoder, DecoderOptions, Register};

/// One of each kind, as large as it can be, but for what takes its places from outside.
fn largest() -> Vec<Program<'static>> {
    let mut all =
        vec![Program::Return { elsewhere: true }, Program::Stores { stores: MOST_STORES }];
    all.push(Program::Nested { depth: MOST_DEPTH, returns: true });
    all.push(Program::Forward(Pair { store: 8, load: 8, offset: 4096, crosses: true }));
    all.push(Program::Hazard { hazard: Hazard::SplitLock, hit: true });
    for chained in [false, true] {
        all.push(Program::Window { filler: Filler::Vectors, between: MOST_BETWEEN, chained });
    }
    all
}

/// Where what it writes ends, and what it loads, stores or flushes by RSI.
fn end(program: &Program<'_>, bytes: u32) -> u32 {
    let pieces = emit(program, bytes).pieces;
    let written = pieces.iter().map(|(at, bytes)| at + bytes.len() as u32);
    let code = pieces.iter().flat_map(|(_, bytes)| Decoder::new(64, bytes, DecoderOptions::NONE));
    let by_rsi = code.filter(|one| one.memory_base() == Register::RSI);
    let data = by_rsi.map(|one| data(bytes) + one.memory_displacement64() as u32 + 4);
    written.chain(data).max().unwrap()
}

#[test]
fn the_largest_programs_fit_into_the_least_memory_and_one_not_into_half_of_it() {
    for program in largest() {
        assert!(end(&program, LEAST_BYTES) <= LEAST_BYTES, "{program:?}");
    }
    assert_eq!((window::DATA_BYTES, data::STORED_BYTES), (66_564, 45_764));
    assert!(data(LEAST_BYTES / 2) + window::DATA_BYTES > LEAST_BYTES / 2);
}

/// What the two programs that reach furthest do is what their constants say.
#[test]
fn lines_that_miss_end_where_it_is_said() {
    let twice = 2 * LEAST_BYTES;
    let emitted = emit(&Program::Stores { stores: MOST_STORES }, twice);
    let (_, code) = &emitted.pieces[0];
    let code = Decoder::new(64, code, DecoderOptions::NONE).into_iter();
    let furthest = code.map(|one| one.memory_displacement64() as u32 + 4).max();
    assert_eq!(furthest, Some(data::STORED_BYTES));
    let program = Program::Window { filler: Filler::Nops, between: 0, chained: true };
    assert_eq!(end(&program, twice), data(twice) + window::DATA_BYTES);
}

#[test]
#[should_panic(expected = "131072 bytes for programs")]
fn less_memory_is_refused() {
    let _ = emit(&Program::Return { elsewhere: false }, LEAST_BYTES / 2);
}
