//! Addresses of the firmware as function, file and line.

use crate::program::demangled;
use addr2line::Loader;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use protocol::hex::Hex;
use protocol::record::Record;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// One step of a backtrace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame {
    /// Address in memory.
    pub address: u64,
    /// Function, if known.
    pub function: Option<String>,
    /// File and line, if known.
    pub location: Option<String>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} {}", self.address, self.function.as_deref().unwrap_or("?"))?;
        if let Some(location) = &self.location {
            write!(f, "\n      at {location}")?;
        }
        Ok(())
    }
}

fn place(at: addr2line::Location<'_>) -> Option<String> {
    Some(format!("{}:{}", at.file?, at.line.unwrap_or(0)))
}

/// Resolves addresses of one kernel file.
pub struct Symbols {
    loader: Option<Loader>,
    /// Where the image was linked to start.
    linked: u64,
    /// The addresses of its segments.
    segments: Vec<Range<u64>>,
    /// The file.
    bytes: Vec<u8>,
}

/// A function's machine code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FunctionCode {
    /// Its first address in the file.
    pub start: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Symbols {
    /// Reads the debug information of `kernel`. Without it every address stays a number.
    #[must_use]
    pub fn of(kernel: &Path) -> Self {
        let bytes = std::fs::read(kernel).unwrap_or_default();
        let range =
            |part: object::Segment| part.address()..part.address().saturating_add(part.size());
        let segments = object::File::parse(&*bytes)
            .map_or_else(|_| Vec::new(), |file| file.segments().map(range).collect());
        let linked = segments.iter().map(|part| part.start).min().unwrap_or(0);
        Self { loader: Loader::new(kernel).ok(), linked, segments, bytes }
    }

    /// The code from an address of the file to the end of its section.
    #[must_use]
    pub fn code(&self, address: u64) -> Option<Vec<u8>> {
        let file = object::File::parse(&*self.bytes).ok()?;
        file.sections().find_map(|section| {
            let from =
                address.checked_sub(section.address()).filter(|from| *from < section.size())?;
            Some(section.data().ok()?.get(usize::try_from(from).ok()?..)?.to_vec())
        })
    }

    /// The function around an address of the file, if a symbol says where it begins and ends.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<FunctionCode> {
        let file = object::File::parse(&*self.bytes).ok()?;
        let around = |symbol: &object::Symbol| {
            (symbol.address()..symbol.address().saturating_add(symbol.size())).contains(&address)
        };
        let symbol = file.symbols().find(around)?;
        let (start, size) = (symbol.address(), usize::try_from(symbol.size()).ok()?);
        let mut bytes = self.code(start)?;
        bytes.truncate(size);
        Some(FunctionCode { start, bytes })
    }

    /// An address in memory as the file has it. `base` is where the image starts in memory.
    #[must_use]
    pub fn in_file(&self, address: u64, base: u64) -> u64 {
        address.wrapping_sub(base).wrapping_add(self.linked)
    }

    /// Resolves a backtrace. `base` is where the image starts, from the start record. All but the first
    /// address are return addresses, which may be the first byte of the next function: the call is before.
    /// Inlined functions come as frames of their own, innermost first.
    #[must_use]
    pub fn resolve(&self, backtrace: &[Hex], base: u64, first_is_exact: bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        for (index, &Hex(address)) in backtrace.iter().enumerate() {
            let exact = index == 0 && first_is_exact;
            let probe = self.in_file(address, base).wrapping_sub(u64::from(!exact));
            let before = frames.len();
            self.inlined(probe, address, &mut frames);
            if frames.len() == before {
                frames.push(Frame { address, function: None, location: None });
            }
        }
        frames
    }

    /// Whether a segment of the file has this address. A symbol without an end, such as the linker's `_end`, would
    /// otherwise name the code after it.
    fn has(&self, address: u64) -> bool {
        self.segments.iter().any(|part| part.contains(&address))
    }

    /// The innermost function at an address of the file, with its line.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Frame> {
        if !self.has(address) {
            return None;
        }
        let mut frames = Vec::new();
        self.inlined(address, address, &mut frames);
        let frame = frames.into_iter().next();
        if frame.as_ref().is_some_and(|frame| frame.function.is_some()) {
            return frame;
        }
        // Assembly has a symbol, and lines if it was assembled with debug information, but no function there.
        let loader = self.loader.as_ref()?;
        let name = demangled(loader.find_symbol(address)?).into_owned();
        let line = || loader.find_location(address).ok().flatten().and_then(place);
        let location = frame.and_then(|frame| frame.location).or_else(line);
        Some(Frame { address, function: Some(name), location })
    }

    fn inlined(&self, probe: u64, address: u64, frames: &mut Vec<Frame>) -> Option<()> {
        let mut iterator = self.loader.as_ref()?.find_frames(probe).ok()?;
        while let Ok(Some(frame)) = iterator.next() {
            let function = frame.function.as_ref().and_then(|f| f.demangle().ok());
            let location = frame.location.and_then(place);
            frames.push(Frame {
                address,
                function: function.map(std::borrow::Cow::into_owned),
                location,
            });
        }
        Some(())
    }
}

/// Where the image started, according to the report.
#[must_use]
pub fn image_base(report: &crate::collect::Report) -> u64 {
    let start = report.records.iter().rev().find_map(|numbered| match &numbered.record {
        Record::Start(start) => Some(start.image_base.0),
        _ => None,
    });
    start.unwrap_or(0)
}
