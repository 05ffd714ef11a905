//! A registered benchmark, as the host tool reads it out of the section `barecount` of a linked program.
//!
//! `include/barecount.h` declares the same for C.

/// Takes the parameter; 0 where there is none. It may unwind on the host, where a failed check is told and the next one run.
pub type Function = extern "C-unwind" fn(u64);

/// `barecnt` and the version of this layout: what else a section of this name holds is not taken for entries.
pub const MAGIC: u64 = u64::from_le_bytes(*b"barecnt\x01");

/// The entry has a parameter, which becomes part of its name.
pub const HAS_PARAMETER: u64 = 1;

/// One function with one parameter: 64 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct Entry {
    magic: u64,
    name: *const u8,
    name_bytes: u64,
    parameter: u64,
    function: Function,
    setup: Option<Function>,
    teardown: Option<Function>,
    flags: u64,
}

const _: () = assert!(size_of::<Entry>() == 64 && align_of::<Entry>() == 8);

// SAFETY: nothing writes to an entry, and its name is a string of the program.
unsafe impl Sync for Entry {}

impl Entry {
    /// A benchmark without parameter and set-up.
    #[must_use]
    pub const fn new(name: &'static str, function: Function) -> Self {
        Self {
            magic: MAGIC,
            name: name.as_ptr(),
            name_bytes: name.len() as u64,
            parameter: 0,
            function,
            setup: None,
            teardown: None,
            flags: 0,
        }
    }

    /// The same for one parameter of several.
    #[must_use]
    pub const fn with_parameter(self, parameter: u64) -> Self {
        Self { parameter, flags: self.flags | HAS_PARAMETER, ..self }
    }

    /// The same with functions that run before and after each run, and are not measured.
    #[must_use]
    pub const fn with_setup(self, setup: Function, teardown: Function) -> Self {
        Self { setup: Some(setup), teardown: Some(teardown), ..self }
    }
}

impl Entry {
    /// Whether it is an entry at all.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.magic == MAGIC && !self.name.is_null()
    }

    /// Name and parameter.
    #[cfg(not(barecount_bare))]
    #[must_use]
    pub fn name(&self) -> (&str, Option<u64>) {
        // SAFETY: `new` took pointer and length from a `str`, and the header from a string literal.
        let name = unsafe { core::slice::from_raw_parts(self.name, self.name_bytes as usize) };
        let parameter = (self.flags & HAS_PARAMETER != 0).then_some(self.parameter);
        (core::str::from_utf8(name).unwrap_or("?"), parameter)
    }

    /// Runs it once, with what belongs around it.
    pub fn run(&self) {
        self.run_through(Self::call);
    }

    /// The same, with `call` for what is measured.
    pub fn run_through(&self, call: fn(&Self)) {
        if let Some(setup) = self.setup {
            setup(self.parameter);
        }
        call(self);
        if let Some(teardown) = self.teardown {
            teardown(self.parameter);
        }
    }

    /// Calls what is measured.
    #[inline(always)]
    pub fn call(&self) {
        (self.function)(self.parameter);
    }
}

// Made by linkers for every section whose name is an identifier.
unsafe extern "C" {
    #[link_name = "__start_barecount"]
    static START: [Entry; 0];
    #[link_name = "__stop_barecount"]
    static STOP: [Entry; 0];
}

/// What this program registers.
#[must_use]
pub fn entries() -> &'static [Entry] {
    let (start, stop) = ((&raw const START).cast::<Entry>(), (&raw const STOP).cast::<Entry>());
    let bytes = stop.addr() - start.addr();
    // SAFETY: the linker puts the section between the two, and all that is in it are entries of this program.
    unsafe { core::slice::from_raw_parts(start, bytes / size_of::<Entry>()) }
}
