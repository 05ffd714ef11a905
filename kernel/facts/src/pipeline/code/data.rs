//! Code that stores and loads. RSI has the address of its data.

use super::{Code, mixed};

/// Most stores in a row.
pub const MOST_STORES: u32 = 144;
/// Bytes of data: a page, what lies a page further, and a line beside that.
const DATA_BYTES: u32 = 10 << 10;
/// Where stores lie in it: the second line of 128 bytes, or the last bytes of that.
const PLACE: i32 = 256;
const CROSSING: i32 = 256 + 128 - 4;
/// Bytes between lines that stores miss: an odd number of lines of 64 bytes, and another line of 128 each.
const APART: u32 = 320;
/// Bytes of data from the first of these lines to the end of the last store.
pub(super) const STORED_BYTES: u32 = (MOST_STORES - 1) * APART + 4;

/// A store and a load after it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pair {
    /// Bytes that are stored: 4 or 8.
    pub store: u32,
    /// Bytes that are loaded: 1, 4 or 8.
    pub load: u32,
    /// The load's address less the store's.
    pub offset: i32,
    /// The stored bytes are of two lines.
    pub crosses: bool,
}

impl Pair {
    /// How often it is in a round.
    pub const REPEATED: u64 = 16;
}

impl Code {
    /// Zeros where data lie: each loaded value is part of the next address.
    fn zeros(&mut self, data: u32) {
        self.at(data);
        if let Some((_, all)) = self.pieces.last_mut() {
            all.resize(DATA_BYTES as usize, 0);
        }
    }

    /// `mov [rsi + place], rax`, or a part of it.
    fn store(&mut self, bytes: u32, place: i32) {
        self.put(if bytes == 8 { &[0x48, 0x89, 0x86] } else { &[0x89, 0x86] });
        self.put(&place.to_le_bytes());
    }

    pub(super) fn forward(&mut self, (entry, data): (u32, u32), pair: &Pair, rounds: u32) {
        self.zeros(data);
        self.at(entry);
        self.rounds(rounds);
        // xor eax, eax
        self.put(&[0x31, 0xc0]);
        let top = self.here();
        let place = if pair.crosses { CROSSING } else { PLACE };
        for _ in 0..Pair::REPEATED {
            self.store(pair.store, place);
            // [rsi + rax + the load's place]
            self.put(match pair.load {
                8 => &[0x48, 0x8b, 0x84, 0x06],
                4 => &[0x8b, 0x84, 0x06],
                _ => &[0x0f, 0xb6, 0x84, 0x06],
            });
            self.put(&(place + pair.offset).to_le_bytes());
        }
        self.again(top);
        self.put(&[0xc3]);
    }

    /// Stores, and what flushes all lines before them. Flushing waits for the stores of the try before, so it is not to be timed.
    pub(super) fn stores(&mut self, entry: u32, stores: u32) -> u32 {
        // In an order that fetching ahead does not know.
        let mut places: [u32; MOST_STORES as usize] = core::array::from_fn(|at| at as u32);
        let mut state = 1;
        for at in (1..places.len()).rev() {
            state = mixed(state);
            places.swap(at, (state % (at as u64 + 1)) as usize);
        }
        self.at(entry);
        for place in &places[..stores.min(MOST_STORES) as usize] {
            self.store(4, (place * APART) as i32);
        }
        // lfence waits for what is before it, but not for stores to be written (SDM vol. 2, LFENCE); ret
        self.put(&[0x0f, 0xae, 0xe8, 0xc3]);
        let before = self.here();
        for place in places {
            // clflush [rsi + place]
            self.put(&[0x0f, 0xae, 0xbe]);
            self.put(&(place * APART).to_le_bytes());
        }
        // mfence; lfence; ret
        self.put(&[0x0f, 0xae, 0xf0, 0x0f, 0xae, 0xe8, 0xc3]);
        before
    }
}
