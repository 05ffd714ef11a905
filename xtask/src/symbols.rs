//! Addresses of the firmware as function, file and line.

use addr2line::Loader;
use object::{Object, ObjectSegment};
use protocol::record::{Hex, Record};
use std::fmt;
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

/// Resolves addresses of one kernel file.
pub struct Symbols {
    loader: Option<Loader>,
    /// Where the image was linked to start.
    linked: u64,
}

impl Symbols {
    /// Reads the debug information of `kernel`. Without it every address stays a number.
    #[must_use]
    pub fn of(kernel: &Path) -> Self {
        let bytes = std::fs::read(kernel).unwrap_or_default();
        let first = |file: &object::File| file.segments().map(|part| part.address()).min();
        let linked = object::File::parse(&*bytes).ok().and_then(|file| first(&file)).unwrap_or(0);
        Self { loader: Loader::new(kernel).ok(), linked }
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

    /// The innermost function at an address of the file, with its line.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Frame> {
        let mut frames = Vec::new();
        self.inlined(address, address, &mut frames);
        let frame = frames.into_iter().next().filter(|frame| frame.function.is_some());
        // Code without debug information, such as assembly, still has a symbol.
        frame.or_else(|| {
            let name = self.loader.as_ref()?.find_symbol(address)?.to_string();
            Some(Frame { address, function: Some(name), location: None })
        })
    }

    fn inlined(&self, probe: u64, address: u64, frames: &mut Vec<Frame>) -> Option<()> {
        let mut iterator = self.loader.as_ref()?.find_frames(probe).ok()?;
        while let Ok(Some(frame)) = iterator.next() {
            let function = frame.function.as_ref().and_then(|f| f.demangle().ok());
            let location = frame
                .location
                .as_ref()
                .and_then(|at| Some(format!("{}:{}", at.file?, at.line.unwrap_or(0))));
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
