//! Parameters as words, for the page that hypervisor and plugin share.

use super::super::transfer::MOST_TRANSFER;
use super::*;

/// The word of [`Parameters::words`] at which those of the ports begin.
const PORTS_AT: usize = 26;

impl Parameters {
    /// Words of [`Self::words`].
    pub const WORDS: usize = PORTS_AT + ports::CLASSES;

    /// As words, for those who talk over a page of them; none is all zeros.
    #[must_use]
    pub fn words(&self) -> [u64; Self::WORDS] {
        let cache = |one: &Option<CacheShape>| {
            one.map_or([0; 2], |one| {
                let policy = u64::from(one.policy.number());
                [one.bytes, u64::from(one.ways) | policy << 16 | u64::from(one.cycles) << 32]
            })
        };
        let code = cache(&self.code);
        let [same, narrow, offset, wide, cross, alias] = self.forward.list();
        let [rob, registers, vectors, loads, scheduler] = self.window.list();
        let [l2, l3, memory, stream] = self.transfer.list();
        let [paired, next, after, ahead, stride] = self.prefetch.list();
        let four = |a: u16, b: u16, c: u16, d: u16| {
            u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
        };
        let tlb = |one: TlbShape| u64::from(one.entries) | u64::from(one.ways) << 32;
        let [[a, b], [c, d], [e, f]] = [0, 1, 2].map(|level| cache(&self.caches[level]));
        let [uops, ways, line, block, decode, looped, outside] = self.front.list();
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let mut words = [0; Self::WORDS];
        let first = [
            pair(self.line, self.memory_cycles),
            a,
            b,
            c,
            d,
            e,
            f,
            tlb(self.dtlb),
            tlb(self.dtlb_large),
            self.stlb.map_or(0, tlb),
            pair(self.stlb_cycles, self.walk_cycles),
            pair(self.split_cycles, self.cross_cycles),
            pair(self.mispredict_cycles, self.returns),
            self.ports.map_or(0, |ports| ports.issue.into()),
            tlb(self.btb),
            code[0],
            code[1],
            four(same, narrow, offset, wide),
            four(cross, alias, self.stores as u16, vectors),
            four(rob, registers, loads, scheduler),
            four(l2, l3, memory, stream),
            four(paired | next << 1, after, ahead, stride),
            self.direct.map_or(0, tlb),
            self.direct_cycles.into(),
            four(uops, ways, line, block),
            four(decode, looped, outside, 0),
        ];
        words[..first.len()].copy_from_slice(&first);
        if let Some(ports) = &self.ports {
            words[PORTS_AT..].copy_from_slice(&ports.words());
        }
        words
    }

    /// The same from words; `None`: there are none, or they are not parameters.
    #[must_use]
    pub fn of_words(words: &[u64; Self::WORDS]) -> Option<Self> {
        let halves = |word: u64| (word as u32, (word >> 32) as u32);
        let cache = |bytes: u64, rest: u64| {
            let policy = Policy::by_number((rest >> 16) as u16)?;
            let shape = CacheShape {
                bytes,
                ways: u32::from(rest as u16),
                policy,
                cycles: (rest >> 32) as u32,
            };
            (bytes > 0).then_some(shape)
        };
        let tlb = |word: u64| {
            let (entries, ways) = halves(word);
            TlbShape { entries, ways }
        };
        let &[
            first,
            a,
            b,
            c,
            d,
            e,
            f,
            dtlb,
            dtlb_large,
            stlb,
            g,
            h,
            i,
            issue,
            targets,
            code,
            code_rest,
            j,
            k,
            window,
            transfer,
            prefetch,
            direct,
            direct_cycles,
            uops,
            decoders,
            ..,
        ] = words;
        let (line, memory_cycles) = halves(first);
        let (stlb_cycles, walk_cycles) = halves(g);
        let (split_cycles, cross_cycles) = halves(h);
        let (mispredict_cycles, returns) = halves(i);
        let part = |word: u64, at: u32| (word >> (16 * at)) as u16;
        let [same, narrow, offset, wide] = [0, 1, 2, 3].map(|at| part(j, at));
        let forward = Forward { same, narrow, offset, wide, cross: part(k, 0), alias: part(k, 1) };
        let stores = part(k, 2).into();
        let [rob, registers, loads, scheduler] = [0, 1, 2, 3].map(|at| part(window, at));
        let window = WindowShape::of([rob, registers, part(k, 3), loads, scheduler]);
        let transfer = Transfer::of([0, 1, 2, 3].map(|at| part(transfer, at)));
        let [which, after, ahead, stride] = [0, 1, 2, 3].map(|at| part(prefetch, at));
        let prefetch = PrefetcherShape::of([which & 1, which >> 1, after, ahead, stride])?;
        let [uops, ways, uop_line, block] = [0, 1, 2, 3].map(|at| part(uops, at));
        let [decode, looped, outside] = [0, 1, 2].map(|at| part(decoders, at));
        let front = FrontEndShape::of([uops, ways, uop_line, block, decode, looped, outside]);
        let all = Self {
            line,
            caches: [cache(a, b), cache(c, d), cache(e, f)],
            code: cache(code, code_rest),
            memory_cycles,
            dtlb: tlb(dtlb),
            dtlb_large: tlb(dtlb_large),
            stlb: (stlb != 0).then(|| tlb(stlb)),
            stlb_cycles,
            walk_cycles,
            split_cycles,
            cross_cycles,
            mispredict_cycles,
            forward,
            stores,
            window,
            transfer,
            prefetch,
            returns,
            btb: tlb(targets),
            direct: (direct != 0).then(|| tlb(direct)),
            direct_cycles: direct_cycles as u32,
            ports: PortMap::of_words(&words[PORTS_AT..], issue as u8),
            front,
        };
        let is_tlb = |tlb: &TlbShape| is_tlb(*tlb);
        let sound = [32, 64, 128].contains(&line)
            && all
                .caches
                .iter()
                .chain([&all.code])
                .flatten()
                .all(|cache| (1..=MAX_WAYS).contains(&cache.ways))
            && all.code.is_none_or(|code| code.policy == Policy::Lru)
            && [all.dtlb, all.dtlb_large].iter().chain(&all.stlb).chain(&all.direct).all(is_tlb)
            && all.forward.list().iter().all(|cycles| *cycles <= MOST_CYCLES)
            && all.transfer.list().iter().all(|cycles| *cycles <= MOST_TRANSFER)
            && stores <= MOST_STORES
            && window.is_sound()
            && all.has_cycles()
            && (1..=64).contains(&returns)
            && is_btb(all.btb);
        // Ports that are none would be left out, and so would bits that nothing is read from.
        (sound && all.check().is_ok() && all.words() == *words).then_some(all)
    }
}
