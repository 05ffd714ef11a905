//! What can be wrong with compiled code.

use protocol::program;
use std::fmt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file that was named, and what is wrong with it.
#[derive(Debug, Error)]
#[error("{}: {what}", file.display())]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong.
    pub what: WrongFile,
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum WrongFile {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Read(std::io::Error),
    /// A thin archive's member cannot be read.
    #[error("it is a thin archive, and its member {name} cannot be read: {error}")]
    Member {
        /// The member's file, as the archive names it.
        name: String,
        /// Why.
        error: std::io::Error,
    },
    /// Another kind of file.
    #[error("it is neither an ELF file nor a static library")]
    NotElf,
    /// What `-flto` writes.
    #[error("it is bitcode of LLVM, not machine code: compile without -flto")]
    Bitcode,
    /// ELF's class is not 64.
    #[error("it is a 32-bit ELF file; compiled code must be 64-bit")]
    Bits32,
    /// Its bytes are in the other order.
    #[error("it is a big-endian ELF file, of another processor")]
    BigEndian,
    /// ELF's machine is not x86-64.
    #[error("it is for another architecture: {0}")]
    Architecture(String),
    /// ELF's type is none of those that can be called.
    #[error("it is an ELF file of type {0}: relocatable objects and executables are taken")]
    Type(u16),
    /// Its end is missing, or it contradicts itself.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It needs a dynamic linker.
    #[error("it is linked dynamically ({0}): link it with -static or -static-pie")]
    Dynamic(String),
    /// Executables are whole.
    #[error("it is an executable, which is already linked; give only this file")]
    Whole,
}

/// What is wrong with compiled code.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// Of one of its files.
    #[error(transparent)]
    File(#[from] FileError),
    /// No file has the symbol.
    #[error("no function `{name}` in {}{}", Files(files), suggestion(near))]
    NoFunction {
        /// The function that was requested.
        name: String,
        /// Where it was looked for.
        files: Vec<PathBuf>,
        /// Names like it.
        near: Vec<String>,
    },
    /// The linker cannot reach it.
    #[error("`{name}` is local to {} (static): it must be global", file.display())]
    Local {
        /// The function.
        name: String,
        /// Where it is.
        file: PathBuf,
    },
    /// It cannot be called.
    #[error("`{name}` is data, not a function")]
    Data {
        /// The symbol.
        name: String,
    },
    /// A function that another one chooses.
    #[error(
        "`{name}` is an indirect function (IFUNC), which a dynamic linker would choose; name one of its variants"
    )]
    Indirect {
        /// The function.
        name: String,
    },
    /// A function that another one chooses is called.
    #[error(
        "it reaches `{name}`, an indirect function (IFUNC): the start of a C library would choose its variant, and there is none \
         here; link it with functions of your own"
    )]
    Reached {
        /// The function.
        name: String,
    },
    /// Nobody knows which one is meant.
    #[error("there are {count} symbols `{name}`{}", list(places))]
    Ambiguous {
        /// The symbol.
        name: String,
        /// How many.
        count: usize,
        /// Where they are, if the linker says; of a linked file, names that have their addresses.
        places: Vec<String>,
    },
    /// What it needs is not there.
    #[error("undefined: {}", list_undefined(.0))]
    Undefined(Vec<Missing>),
    /// Storage of threads, of which there are none.
    #[error("`{function}` uses thread-local storage{}; there are no threads", symbol(name))]
    ThreadLocal {
        /// The variable, if it has a name.
        name: Option<String>,
        /// Who uses it.
        function: String,
    },
    /// There is no system below it.
    #[error(
        "`{function}` makes a system call ({instruction} at {address:#x}); there is no operating system"
    )]
    SystemCall {
        /// Who makes it.
        function: String,
        /// `syscall`, `sysenter` or `int`.
        instruction: String,
        /// Address of it in the program.
        address: u64,
    },
    /// An address does not fit into its field.
    #[error("a relocation overflows: {0}")]
    Overflow(String),
    /// A relocation of an executable that nobody applies here.
    #[error("the executable has relocations of type {kind} ({count}), which need a dynamic linker")]
    Relocation {
        /// ELF's number.
        kind: u32,
        /// How many.
        count: usize,
    },
    /// It has no room.
    #[error(
        "it takes the addresses {from:#x} to {to:#x}; programs may have {:#x} to {:#x}",
        program::LOWEST,
        program::END
    )]
    TooLarge {
        /// Its first address.
        from: u64,
        /// The end.
        to: u64,
    },
    /// It lies twice at one address.
    #[error("the segments at {first:#x} and {second:#x} overlap")]
    Overlap {
        /// One.
        first: u64,
        /// The other.
        second: u64,
    },
    /// It cannot be mapped as it is.
    #[error(transparent)]
    Segments(#[from] program::ProgramError),
    /// The linker says something else.
    #[error("rust-lld cannot link it: {0}")]
    Linker(String),
    /// There is no linker, or nowhere to keep what it makes.
    #[error("cannot link: {0}")]
    Tool(String),
}

/// A symbol that nobody defines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    /// The symbol.
    pub name: String,
    /// Who needs it.
    pub by: String,
}

struct Files<'a>(&'a [PathBuf]);

impl fmt::Display for Files<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(|file| file.display().to_string()).collect();
        f.write_str(&names.join(", "))
    }
}

fn suggestion(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("; there is {}", names.join(", "))
}

fn list(places: &[String]) -> String {
    if places.is_empty() { String::new() } else { format!(": {}", places.join(", ")) }
}

fn list_undefined(missing: &[Missing]) -> String {
    let one = |one: &Missing| format!("`{}`, which `{}` uses", one.name, one.by);
    missing.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn symbol(name: &Option<String>) -> String {
    name.as_ref().map_or(String::new(), |name| format!(" (`{name}`)"))
}

impl FileError {
    /// Of `file`.
    pub(super) fn new(file: &Path, what: WrongFile) -> Self {
        Self { file: file.to_path_buf(), what }
    }

    /// Of a file that the library cannot read.
    pub(super) fn damaged(file: &Path) -> impl Fn(object::Error) -> Self {
        move |error| Self::new(file, WrongFile::Damaged(error.to_string()))
    }
}
