//! The front end, beside a port map with `issue`: a micro-op cache, a loop buffer, and decoders.
//!
//! `uops=ENTRIES/WAYS/LINE/BLOCK@DECODE`: a line of the micro-op cache has up to LINE instructions (6 or 8) that follow each other in BLOCK
//! bytes of code (32 or 64), from the one at which it was entered on. Blocks are its sets; LRU. Of what it does not hold, DECODE
//! instructions are decoded in a cycle. `loop=ENTRIES@OUTSIDE`: a loop of so many instructions and fewer comes from the loop buffer after
//! two rounds of as many instructions, with those of `issue` in a cycle; whatever else is not decoded, OUTSIDE in a cycle.

/// The longest loop of a loop buffer; no known one has more.
pub const MOST_LOOP: u16 = 160;
/// The fewest instructions of a micro-op cache: more than any loop buffer has.
pub const FEWEST_UOPS: u16 = 256;
/// The most.
pub const MOST_UOPS: u16 = 16 << 10;
/// What is wrong with one.
pub(super) const UOPS: &str = "the micro-op cache is ENTRIES/WAYS/LINE/BLOCK@DECODE, as uops=1536/8/6/32@3, after ports and issue: 256 to 16384 entries in a power of two of sets, each of which holds an instruction for every two bytes of a block, lines of 6 or 8, blocks of 32 or 64 bytes, and fewer decoded than issued in a cycle";
pub(super) const LOOP: &str = "the loop buffer is ENTRIES@OUTSIDE, as loop=64@4, after ports and issue: 16 to 160 entries, and fewer outside it than issued in a cycle, but more than decoded";

/// What a front end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontEndShape {
    /// Instructions of the micro-op cache; 0: there is none.
    pub uops: u16,
    /// Its ways.
    pub ways: u16,
    /// Instructions of a line.
    pub line: u16,
    /// Bytes of code that share a set.
    pub block: u16,
    /// Instructions that are decoded in a cycle.
    pub decode: u16,
    /// Instructions of the longest loop of the loop buffer; 0: there is none.
    pub looped: u16,
    /// With a loop buffer, instructions in a cycle that come from elsewhere, and are not decoded.
    pub outside: u16,
}

impl FrontEndShape {
    /// Nothing that takes time.
    pub const NONE: Self =
        Self { uops: 0, ways: 0, line: 0, block: 0, decode: 0, looped: 0, outside: 0 };

    /// Sets of the micro-op cache.
    #[must_use]
    pub const fn sets(&self) -> u16 {
        self.uops / (self.ways * self.line)
    }

    /// All of it, in the order of its fields.
    #[must_use]
    pub const fn list(&self) -> [u16; 7] {
        [self.uops, self.ways, self.line, self.block, self.decode, self.looped, self.outside]
    }

    /// The same from them.
    pub(super) const fn of([uops, ways, line, block, decode, looped, outside]: [u16; 7]) -> Self {
        Self { uops, ways, line, block, decode, looped, outside }
    }

    /// `1536/8/6/32@3`; `none`: without a micro-op cache.
    pub(super) fn with_uops(self, text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self { looped: self.looped, outside: self.outside, ..Self::NONE });
        }
        let (shape, decode) = text.split_once('@')?;
        let mut numbers = shape.split('/').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let [uops, ways, line, block] = [next()?, next()?, next()?, next()?];
        let decode = decode.parse().ok()?;
        (numbers.next().is_none() && uops > 0).then_some(Self {
            uops,
            ways,
            line,
            block,
            decode,
            ..self
        })
    }

    /// `64@4`; `none`: without a loop buffer.
    pub(super) fn with_loop(self, text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self { looped: 0, outside: 0, ..self });
        }
        let (looped, outside) = text.split_once('@')?;
        let (looped, outside) = (looped.parse().ok()?, outside.parse().ok()?);
        (looped > 0).then_some(Self { looped, outside, ..self })
    }

    /// Whether it can be, with so many instructions issued in a cycle; otherwise what is wrong.
    pub(super) fn check(&self, issue: u8) -> Result<(), &'static str> {
        let issue = u16::from(issue);
        let Self { uops, ways, line, block, decode, looped, outside } = *self;
        let has_loop = (16..=MOST_LOOP).contains(&looped) && (1..issue).contains(&outside);
        if !has_loop && (looped, outside) != (0, 0) {
            return Err(LOOP);
        }
        let most = if has_loop { outside } else { issue };
        let is_whole = || {
            let of_set = u32::from(ways) * u32::from(line);
            [6, 8].contains(&line)
                && [32, 64].contains(&block)
                && (1..=64).contains(&ways)
                // A set holds a block of instructions of two bytes.
                && of_set * 2 >= u32::from(block)
                && u32::from(uops).is_multiple_of(of_set)
                && (u32::from(uops) / of_set).is_power_of_two()
        };
        let is_sound =
            (FEWEST_UOPS..=MOST_UOPS).contains(&uops) && is_whole() && (1..most).contains(&decode);
        match is_sound || [uops, ways, line, block, decode] == [0; 5] {
            true => Ok(()),
            false => Err(UOPS),
        }
    }
}
