//! ACPI's Watchdog Action Table: Microsoft, "Hardware Watchdog Timers Design Specification" 1.0, 3. Each action is a list of
//! reads and writes of registers.

use super::Access;
use alloc::vec::Vec;

/// Where the fields are: PCI segment (two bytes), bus, device and function; milliseconds of a count, most and least counts; flags;
/// number of entries, the entries.
const PCI: usize = 40;
const PERIOD: usize = 48;
const MOST: usize = 52;
const LEAST: usize = 56;
const FLAGS: usize = 60;
const COUNT: usize = 64;
const ENTRIES: usize = 68;
const ENTRY_BYTES: usize = 24;
/// No table has as many entries.
const MOST_ENTRIES: u32 = 64;

/// Flag: the timer is on when the machine's firmware ends. Switched off in the set-up, it is there and may never expire.
const ENABLED: u8 = 1;
/// A timer that is no PCI device: all ones, of which the segment has 8 or 16 (Linux, drivers/acpi/acpi_watchdog.c).
const NO_PCI: [[u8; 5]; 2] = [[0xff, 0, 0xff, 0xff, 0xff], [0xff; 5]];

/// Actions.
const RESET: u8 = 1;
const SET_COUNTDOWN: u8 = 6;
const QUERY_RUNNING: u8 = 8;
const SET_RUNNING: u8 = 9;
const SET_STOPPED: u8 = 11;
const SET_REBOOT: u8 = 17;
/// Instructions: what is done with the register; and that the other bits of it stay.
const READ_VALUE: u8 = 0;
const READ_COUNTDOWN: u8 = 1;
const WRITE_VALUE: u8 = 2;
const WRITE_COUNTDOWN: u8 = 3;
const PRESERVE: u8 = 0x80;
/// Address spaces of a generic address (ACPI specification 6.5, 5.2.3.2).
const MEMORY: u8 = 0;
const PORT: u8 = 1;

/// One entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Entry {
    action: u8,
    instruction: u8,
    is_port: bool,
    bytes: u8,
    shift: u8,
    address: u64,
    value: u32,
    mask: u32,
}

/// The table, read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wdat {
    period_ms: u32,
    counts: [u32; 2],
    entries: Vec<Entry>,
}

fn word(table: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?))
}

impl Wdat {
    /// Reads a table from its header on. `None`: it is cut off, or says something that no watchdog could do; its timer is switched
    /// off, or a PCI device.
    #[must_use]
    pub fn read(table: &[u8]) -> Option<Self> {
        let (period_ms, most, least) =
            (word(table, PERIOD)?, word(table, MOST)?, word(table, LEAST)?);
        let count = word(table, COUNT)?;
        if period_ms == 0 || least > most || most == 0 || count > MOST_ENTRIES {
            return None;
        }
        if table[FLAGS] & ENABLED == 0 || !NO_PCI.iter().any(|none| table[PCI..].starts_with(none))
        {
            return None;
        }
        let bytes = table.get(ENTRIES..)?.get(..count as usize * ENTRY_BYTES)?;
        let entries = bytes.chunks_exact(ENTRY_BYTES).map(entry).collect::<Option<Vec<_>>>()?;
        let has = |action: u8| entries.iter().any(|entry| entry.action == action);
        // Without these it can be neither set nor stopped.
        [RESET, SET_COUNTDOWN, SET_RUNNING, SET_STOPPED].into_iter().all(has).then_some(Self {
            period_ms,
            counts: [least, most],
            entries,
        })
    }

    /// See [`super::Watchdog::arm`].
    pub fn arm(&self, access: &mut impl Access, ms: u64) -> bool {
        let [least, most] = self.counts.map(u64::from);
        let counts = ms.div_ceil(self.period_ms.into()).clamp(least.max(1), most);
        self.run(access, SET_STOPPED, 0);
        // It may be made to switch the machine off instead.
        self.run(access, SET_REBOOT, 0);
        self.run(access, SET_COUNTDOWN, counts as u32);
        self.run(access, RESET, counts as u32);
        self.run(access, SET_RUNNING, 0);
        self.runs(access)
    }

    /// Starts it for as long as it can count, asks it, and stops it: one that does not run is of no use.
    pub fn works(&self, access: &mut impl Access) -> bool {
        let runs = self.arm(access, u64::MAX);
        self.stop(access);
        runs
    }

    /// Whether it says that it runs. Without that action it is taken to.
    fn runs(&self, access: &mut impl Access) -> bool {
        let queries = |entry: &&Entry| {
            entry.action == QUERY_RUNNING && entry.instruction & !PRESERVE == READ_VALUE
        };
        self.entries.iter().filter(queries).all(|entry| {
            let read = access.read(entry.is_port, entry.address, entry.bytes);
            read >> entry.shift & entry.mask == entry.value
        })
    }

    /// See [`super::Watchdog::reload`].
    pub fn reload(&self, access: &mut impl Access) {
        self.run(access, RESET, 0);
    }

    /// See [`super::Watchdog::stop`].
    pub fn stop(&self, access: &mut impl Access) {
        self.run(access, SET_STOPPED, 0);
    }

    /// Runs an action, if the table has it.
    fn run(&self, access: &mut impl Access, action: u8, countdown: u32) {
        for entry in self.entries.iter().filter(|entry| entry.action == action) {
            let Entry { is_port, address, bytes, shift, mask, .. } = *entry;
            let written = match entry.instruction & !PRESERVE {
                WRITE_VALUE => entry.value,
                WRITE_COUNTDOWN => countdown,
                // Reading may be what resets a counter; what is read is of no use here.
                _ => {
                    access.read(is_port, address, bytes);
                    continue;
                }
            };
            let mut value = (written & mask) << shift;
            if entry.instruction & PRESERVE != 0 {
                value |= access.read(is_port, address, bytes) & !(mask << shift);
            }
            access.write(is_port, address, bytes, value);
        }
    }
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    let [action, instruction, _, _, space, width, shift, access, ..] = *bytes else { return None };
    let known = [READ_VALUE, READ_COUNTDOWN, WRITE_VALUE, WRITE_COUNTDOWN];
    let address = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
    // The width of an access; 0: that of the register in bits.
    let size = match (access, width) {
        (1, _) | (0, 1..=8) => 1,
        (2, _) | (0, 9..=16) => 2,
        (3, _) | (0, 17..=32) => 4,
        _ => return None,
    };
    let fits = shift < 32
        && known.contains(&(instruction & !PRESERVE))
        && match space {
            PORT => address <= 0xffff,
            MEMORY => address != 0 && address <= u32::MAX.into(),
            _ => false,
        };
    let (value, mask) = (word(bytes, 16)?, word(bytes, 20)?);
    let is_port = space == PORT;
    fits.then_some(Entry { action, instruction, is_port, bytes: size, shift, address, value, mask })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Registers that hold what is written, and a list of what was done.
    #[derive(Default)]
    pub struct Model {
        pub held: BTreeMap<(bool, u64), u32>,
        pub done: Vec<(char, u64, u32)>,
    }

    impl Access for Model {
        fn read(&mut self, is_port: bool, address: u64, _: u8) -> u32 {
            let value = self.held.get(&(is_port, address)).copied().unwrap_or(0);
            self.done.push(('r', address, value));
            value
        }
        fn write(&mut self, is_port: bool, address: u64, _: u8, value: u32) {
            self.held.insert((is_port, address), value);
            self.done.push(('w', address, value));
        }
    }

    type Row = (u8, u8, u8, u64, u32, u32);

    /// A table with these actions: action, instruction, shift, port, value, mask.
    fn table(period: u32, [least, most]: [u32; 2], rows: &[Row]) -> Vec<u8> {
        let mut table = vec![0; ENTRIES];
        for (at, value) in
            [(PERIOD, period), (MOST, most), (LEAST, least), (COUNT, rows.len() as u32)]
        {
            table[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        table[FLAGS] = ENABLED;
        table[PCI..PCI + 5].copy_from_slice(&NO_PCI[0]);
        for &(action, instruction, shift, address, value, mask) in rows {
            table.extend_from_slice(&[action, instruction, 0, 0, PORT, 16, shift, 2]);
            table.extend_from_slice(&address.to_le_bytes());
            table.extend_from_slice(&value.to_le_bytes());
            table.extend_from_slice(&mask.to_le_bytes());
        }
        table
    }

    /// As a TCO timer is described: reload by a write, countdown of ten bits, and a bit that halts it.
    fn like_tco() -> Vec<u8> {
        let rows = [
            (RESET, WRITE_VALUE, 0, 0x460, 1, 0xffff),
            (SET_COUNTDOWN, WRITE_COUNTDOWN | PRESERVE, 0, 0x472, 0, 0x3ff),
            (SET_RUNNING, WRITE_VALUE | PRESERVE, 11, 0x468, 0, 1),
            (SET_STOPPED, WRITE_VALUE | PRESERVE, 11, 0x468, 1, 1),
        ];
        table(600, [4, 0x3ff], &rows)
    }

    #[test]
    fn x1_the_table_is_carried_out_action_by_action() {
        let wdat = Wdat::read(&like_tco()).unwrap();
        let mut model = Model::default();
        model.held.insert((true, 0x472), 0xf000);
        model.held.insert((true, 0x468), 0x0801);
        assert!(wdat.arm(&mut model, 30_000));
        assert_eq!(model.held[&(true, 0x472)], 0xf000 | 50, "50 counts of 600 ms; the rest stays");
        assert_eq!(model.held[&(true, 0x468)], 0x0001, "it runs");
        assert_eq!(model.held[&(true, 0x460)], 1);
        let last = model.done.last().unwrap();
        assert_eq!(*last, ('w', 0x468, 1), "it begins to run when all else is done");
        wdat.stop(&mut model);
        assert_eq!(model.held[&(true, 0x468)], 0x0801);
        model.done.clear();
        wdat.reload(&mut model);
        assert_eq!(model.done, [('w', 0x460, 1)]);
        // More and less than it can count.
        for (ms, counts) in [(1, 4), (u64::MAX, 0x3ff)] {
            wdat.arm(&mut model, ms);
            assert_eq!(model.held[&(true, 0x472)] & 0x3ff, counts);
        }
    }

    #[test]
    fn x1_a_table_that_could_not_be_stopped_or_is_cut_off_is_none() {
        let whole = like_tco();
        for end in 0..whole.len() {
            assert_eq!(Wdat::read(&whole[..end]), None, "{end}");
        }
        let no_stop = table(600, [4, 0x3ff], &[(RESET, WRITE_VALUE, 0, 0x460, 1, 1)]);
        assert_eq!(Wdat::read(&no_stop), None);
        for (at, value) in [(PERIOD, 0_u32), (LEAST, 0x400), (COUNT, 65)] {
            let mut wrong = whole.clone();
            wrong[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert_eq!(Wdat::read(&wrong), None, "{at}");
        }
        // An instruction, an address space and a port that do not exist.
        for (at, value) in [(1, 7), (4, 2), (10, 1)] {
            let mut wrong = whole.clone();
            wrong[ENTRIES + at] = value;
            assert_eq!(Wdat::read(&wrong), None, "{at}");
        }
    }

    #[test]
    fn x1_a_timer_that_is_switched_off_or_a_pci_device_is_none() {
        let mut table = like_tco();
        table[PCI..PCI + 5].fill(0xff);
        assert!(Wdat::read(&table).is_some(), "a segment of 16 ones");
        // Another flag: it is stopped in sleep states.
        table[FLAGS] = 0x80;
        assert_eq!(Wdat::read(&table), None);
        for at in [PCI, PCI + 2, PCI + 3, PCI + 4] {
            let mut device = like_tco();
            device[at] = 0;
            assert_eq!(Wdat::read(&device), None, "{at}");
        }
    }

    #[test]
    fn x1_it_is_asked_whether_it_runs() {
        let rows = |running: u32| {
            table(
                600,
                [4, 0x3ff],
                &[
                    (RESET, WRITE_VALUE, 0, 0x460, 1, 0xffff),
                    (SET_COUNTDOWN, WRITE_COUNTDOWN | PRESERVE, 0, 0x472, 0, 0x3ff),
                    (SET_RUNNING, WRITE_VALUE | PRESERVE, 11, 0x468, 0, 1),
                    (SET_STOPPED, WRITE_VALUE | PRESERVE, 11, 0x468, 1, 1),
                    // Another bit than the one that starts it: of a device that is dead, it stays.
                    (QUERY_RUNNING, READ_VALUE, 3, 0x466, running, 1),
                ],
            )
        };
        for (held, running, runs) in [(8, 1, true), (0, 1, false), (8, 0, false), (0, 0, true)] {
            let mut model = Model::default();
            model.held.insert((true, 0x466), held);
            let wdat = Wdat::read(&rows(running)).unwrap();
            assert_eq!(wdat.arm(&mut model, 1000), runs, "{held}");
            assert_eq!(wdat.works(&mut model), runs, "{held}");
            assert_eq!(model.held[&(true, 0x468)], 1 << 11, "it is stopped");
        }
    }

    proptest! {
        /// A few bytes of a good table are changed, so that most of them are still read and carried out.
        #[test]
        fn no_table_makes_it_panic(
            changes in prop::collection::vec((PERIOD..like_tco().len(), any::<u8>()), 1..5),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut table = like_tco();
            for (at, to) in changes {
                table[at] = to;
            }
            if let Some(wdat) = Wdat::read(&table) {
                let mut model = Model::default();
                wdat.arm(&mut model, 1000);
                wdat.works(&mut model);
                wdat.reload(&mut model);
                prop_assert!(model.done.iter().any(|done| done.0 == 'w'));
            }
            let _ = Wdat::read(&bytes);
        }
    }
}
