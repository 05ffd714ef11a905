//! The micro-op cache, the loop buffer and the decoders.

use super::machine::BYTES;
use super::{Modelled, numbers};
use facts::pipeline::code::{Emitted, Program, emit};
use facts::pipeline::{direct, front_end, instruction_cache, issue_of_loops, width};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic};
use pmu_model::uarch::Parameters;
use pmu_model::uarch::front_end::FrontEndShape;
use pmu_model::uarch::parameters::{CacheShape, TlbShape};
use pmu_model::uarch::replacement::Policy;
use protocol::record::{CodeCacheFact, FrontEndFact};

/// A processor with so many instructions issued in a cycle.
fn machine(shape: FrontEndShape, issue: u8) -> (Parameters, Modelled) {
    let ports = Parameters::parse(&format!("ports=alu:0156,issue={issue}")).unwrap().ports;
    let parameters = Parameters { front: shape, ports, ..Parameters::DEFAULT };
    // The text has all of it.
    assert_eq!(Parameters::parse(&parameters.to_string()), Ok(parameters));
    let issue = Some(issue.into());
    (parameters, Modelled { issue, ..Modelled::new(&parameters) })
}

/// An instruction cache that holds loops of twice as many instructions at the greatest density.
fn cache(uops: u16) -> CodeCacheFact {
    let ways = Some(16);
    let set_stride =
        Some((u32::from(uops) * 7).next_power_of_two().clamp(16 << 10, 128 << 10) / 16);
    CodeCacheFact { miss_tenths: 90, ways, set_stride, ..CodeCacheFact::default() }
}

fn check(fact: &FrontEndFact) {
    assert_eq!(fact.uop_cache.is_none(), fact.reason.is_some(), "{fact:?}");
    assert_eq!(fact.decode.is_none(), fact.decode_reason.is_some(), "{fact:?}");
}

#[test]
fn d1_blind_recovery_of_200_random_front_ends() {
    let mut draw = numbers(11);
    let [mut caches, mut loops, mut widths] = [0; 3];
    for _ in 0..200 {
        let issue = 3 + draw(6) as u16;
        let looped = if draw(2) == 0 { 0 } else { 24 + draw(137) as u16 };
        let outside = if looped > 0 { 2 + draw(u64::from(issue) - 2) as u16 } else { 0 };
        let most = if looped > 0 { outside } else { issue };
        let decode = 1 + draw(u64::from(most) - 1) as u16;
        let line = 6 + 2 * draw(2) as u16;
        let block = 32 << draw(2);
        let least_ways = (block / 2 / line).ilog2() + 1;
        let ways = 1 << (u64::from(least_ways) + draw(4 - u64::from(least_ways)));
        let sets = (8192 / (line * ways)).ilog2();
        let least = (512 / (line * ways)).max(1).ilog2() + 1;
        let uops = (line * ways) << (u64::from(least) + draw(u64::from(sets - least) + 1));
        let shape = FrontEndShape { uops, ways, line, block, decode, looped, outside };
        let (parameters, mut machine) = machine(shape, issue as u8);
        let issued = width(&mut machine).width;
        let fact = front_end(&mut machine, &cache(uops), issued);
        let of_loops = fact.loop_buffer.map(|all| issue_of_loops(&mut machine, all).width);
        let issued = of_loops.unwrap_or(issued);
        check(&fact);
        let text = format!("{parameters}: {issued:?} {fact:?}");
        // Loops of 16 to 31 instructions, and of as many more.
        let is_short = (1..47).contains(&looped);
        assert_eq!(issued, Some(issue.into()).filter(|_| !is_short), "{text}");
        assert_eq!(fact.loop_buffer, Some(looped.into()).filter(|all| *all > 0), "{text}");
        assert!(fact.loops.iter().all(|one| one.doubtful == 0), "{text}");
        // What lines of a single set cost that has one too many, in thousandths of a cycle: less than two cycles do not show.
        let each = 1000 / u64::from(decode) - 1000 / u64::from(most);
        let sure = u64::from((ways + 1) * line) * each > 2500;
        let told = fact.uop_cache.unwrap_or(0);
        let uops = u32::from(uops);
        let range = if sure { uops..=uops } else { uops..=uops + uops / 64 };
        assert!(range.contains(&told), "{text}");
        // Loops of twice as many instructions are not always tried.
        assert!(fact.decode == Some(decode.into()) || !sure && fact.decode.is_none(), "{text}");
        caches += u32::from(fact.uop_cache == Some(uops));
        loops += u32::from(fact.loop_buffer.is_some());
        widths += u32::from(fact.decode.is_some());
    }
    println!("of 200: {caches} micro-op caches, {loops} loop buffers, {widths} widths of decoding");
}

/// What a round of these takes longer outside of the loop buffer is less than two cycles.
#[test]
fn d1_loop_buffers_that_save_little_are_told() {
    for (looped, outside, issue) in [(28, 3, 4), (32, 5, 6), (48, 7, 8), (64, 7, 8), (96, 7, 8)] {
        let shape = FrontEndShape { looped, outside, ..FrontEndShape::NONE };
        let fact = front_end(&mut machine(shape, issue).1, &cache(1536), None);
        assert_eq!(fact.loop_buffer, Some(looped.into()), "{outside} of {issue}: {fact:?}");
    }
}

/// Lines of six in 32 bytes, and three decoded in a cycle.
const UOPS: FrontEndShape =
    FrontEndShape { uops: 1536, ways: 8, line: 6, block: 32, decode: 3, looped: 0, outside: 0 };

#[test]
fn d1_no_front_end_is_told_where_none_shows() {
    let (_, mut plain) = machine(FrontEndShape::NONE, 4);
    let none = front_end(&mut plain, &cache(1536), Some(4));
    check(&none);
    assert!(none.loops.iter().all(|one| one.steps.is_empty() && one.evidence.len() > 15));
    let all = (none.uop_cache, none.loop_buffer, none.decode);
    assert_eq!(all, (None, None, None), "{none:?}");
    // Nothing but a loop buffer.
    let looped = FrontEndShape { looped: 64, outside: 3, ..FrontEndShape::NONE };
    let only = front_end(&mut machine(looped, 4).1, &cache(1536), Some(3));
    check(&only);
    assert_eq!((only.uop_cache, only.loop_buffer, only.decode), (None, Some(64), Some(3)));
    assert!(only.reason.is_some_and(|why| why.contains("loop buffer")));
    // No loop is long enough to see how many are decoded.
    let (_, mut fronted) = machine(UOPS, 4);
    let ways = Some(8);
    let small = CodeCacheFact { ways, set_stride: Some(1 << 10), ..cache(0) };
    let short = front_end(&mut fronted, &small, Some(4));
    check(&short);
    assert!(short.reason.as_ref().is_some_and(|why| why.contains("more may fit")), "{short:?}");
    let middle = CodeCacheFact { ways, set_stride: Some(2 << 10), ..cache(0) };
    let middle = front_end(&mut fronted, &middle, Some(4));
    check(&middle);
    assert_eq!((middle.uop_cache, middle.decode), (Some(1536), Some(3)), "{middle:?}");
    let tiny = CodeCacheFact { ways, set_stride: Some(512), ..cache(0) };
    let short = front_end(&mut fronted, &tiny, Some(4));
    check(&short);
    assert!(
        short.decode_reason.as_ref().is_some_and(|why| why.contains("less than twice")),
        "{short:?}"
    );
    // What the instruction cache is, is not known.
    let unknown = CodeCacheFact { miss_tenths: 90, ..CodeCacheFact::default() };
    let unknown = front_end(&mut fronted, &unknown, Some(4));
    check(&unknown);
    assert!(unknown.loops.is_empty() && unknown.uop_cache.is_none());
    // Ticks are not cycles.
    fronted.core = false;
    let ticks = front_end(&mut fronted, &cache(1536), None);
    check(&ticks);
    assert_eq!((ticks.uop_cache, ticks.decode), (Some(1536), None), "{ticks:?}");
    // A clock that differs from try to try.
    for noise in [300, 3000, 30_000] {
        let mut noisy = Modelled { noise, ..machine(UOPS, 4).1 };
        let unsure = front_end(&mut noisy, &cache(1536), Some(4));
        check(&unsure);
        let is_unsure = unsure.loops.iter().any(|one| one.doubtful > 0);
        let is_right = |entries: u32| entries.abs_diff(1536) * 16 < 1536;
        assert!(
            unsure.uop_cache.is_none_or(|entries| is_right(entries) || is_unsure),
            "{unsure:?}"
        );
    }
}

#[test]
fn d1_a_micro_op_cache_is_no_instruction_cache_and_no_table_of_direct_jumps() {
    for line in [6, 8] {
        let shape = FrontEndShape { line, uops: 256 * line, decode: 1, ..UOPS };
        let (parameters, mut timed) = machine(shape, 4);
        let fact = front_end(&mut timed, &cache(1536), Some(4));
        assert_eq!(fact.uop_cache, Some(256 * u32::from(line)));
        // Everything takes time: a jump that is decoded anew, too.
        let mut whole = Modelled { issue: None, ..Modelled::new(&parameters) };
        let code = instruction_cache(&mut whole);
        assert_eq!(code.bytes(), None, "{code:?}");
        let jumps = direct(&mut whole, &cache(1536), &fact);
        assert_eq!(jumps.entries, None, "{jumps:?}");
        assert!(
            jumps.reason.is_some_and(|why| why.contains("micro-op cache")),
            "{:?}",
            jumps.loops
        );
        // With both they are distinguished.
        let l1i = CacheShape { bytes: 32 << 10, ways: 8, policy: Policy::Lru, cycles: 12 };
        let table = Some(TlbShape { entries: 1024, ways: 4 });
        let parameters =
            Parameters { code: Some(l1i), direct: table, direct_cycles: 5, ..parameters };
        let mut whole = Modelled { issue: None, ..Modelled::new(&parameters) };
        let jumps = direct(&mut whole, &cache(1536), &fact);
        assert_eq!(jumps.entries, Some(1024), "{jumps:?}");
        let parameters = Parameters { direct: None, ..parameters };
        let mut whole = Modelled { issue: None, ..Modelled::new(&parameters) };
        let code = instruction_cache(&mut whole);
        assert_eq!((code.bytes(), code.ways), (Some(32 << 10), Some(8)), "{code:?}");
    }
}

/// Of a loop each block has as many instructions as it is to have, none of which crosses into the next one, and the jump does not end at a
/// block's end.
#[test]
fn d1_loops_of_nops_are_laid_out_by_blocks() {
    for in_block in [4, 6, 7, 8, 16] {
        for instructions in (2..300).chain([1024, 1999]) {
            let program = Program::Loop { instructions, in_block, rounds: 3 };
            let Emitted { pieces, entry, before } = emit(&program, BYTES);
            let [(at, bytes)] = &pieces[..] else { panic!("{pieces:?}") };
            assert_eq!((entry, before), (*at, None));
            let decoder = Decoder::with_ip(64, bytes, (*at).into(), DecoderOptions::NONE);
            let all: Vec<Instruction> = decoder.into_iter().collect();
            let [first, inside @ .., last] = &all[..] else { panic!("{all:?}") };
            assert_eq!((first.code(), last.code()), (Code::Mov_r32_imm32, Code::Retnq));
            let text = format!("{in_block} in a block, {instructions}");
            assert_eq!(inside.len() as u32, instructions, "{text}");
            let crosses = |one: &Instruction| one.ip() / 32 != (one.next_ip() - 1) / 32;
            assert!(!inside.iter().any(crosses), "{text}");
            let [nops @ .., dec, jump] = inside else { panic!("{text}") };
            assert_eq!((dec.code(), jump.code()), (Code::Dec_rm32, Code::Jne_rel32_64));
            assert!(
                dec.ip() / 32 == jump.ip() / 32 && !jump.next_ip().is_multiple_of(32),
                "{text}"
            );
            assert_eq!((jump.near_branch_target(), inside[0].ip() % 4096), (inside[0].ip(), 0));
            let is_nop = |one: &Instruction| one.mnemonic() == Mnemonic::Nop;
            assert!(nops.iter().all(is_nop), "{text}");
            // The last block has what is left, and the one before one less if both that end the loop would not fit together.
            let blocks = instructions.div_ceil(in_block);
            let of = |block: u32| {
                inside.iter().filter(|one| one.ip() / 32 == 128 + u64::from(block)).count() as u32
            };
            let whole = (0..blocks.saturating_sub(2)).all(|block| of(block) == in_block);
            assert!(whole && (0..blocks).map(of).sum::<u32>() == instructions, "{text}");
            assert!((0..blocks).all(|block| of(block) <= in_block), "{text}");
        }
    }
}
