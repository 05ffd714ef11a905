//! A recorded processor for the emulated PMU: `--pmu dump:FILE`. The file holds answers of CPUID in one of the forms of
//! [`recorded::text`], or is a report: a bring-up's with all leaves, another one with what its machine record states.

use crate::collect::Numbered;
use crate::page;
use pmu_model::model::Vendor;
use pmu_model::recording::slot::{self, Processor};
use pmu_model::{Model, Recording, recording::Answer};
use recorded::machine::MachineError;
use recorded::text::TextError;
use recorded::{Leaves, text};
use std::path::{Path, PathBuf};
use thiserror::Error;

pub mod report;

/// In front of the file's name.
pub const PREFIX: &str = "dump:";

/// Why there is no such processor.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum RecordingError {
    /// The file.
    #[error("cannot read {}: {error}", file.display())]
    Read { file: PathBuf, error: std::io::Error },
    /// Neither answers of CPUID nor a report.
    #[error("{}: {error}", file.display())]
    Text { file: PathBuf, error: TextError },
    /// A report that says nothing of its machine.
    #[error("{}: the report has no machine record", file.display())]
    NoMachine { file: PathBuf },
    /// A machine record that no processor could have.
    #[error("{}: {error}", file.display())]
    Machine { file: PathBuf, error: MachineError },
    /// Nothing that can be emulated.
    #[error("{}: processor {number} cannot be emulated: {error}", file.display())]
    Unfit { file: PathBuf, number: usize, error: pmu_model::recording::Unfit },
    /// More than fits.
    #[error(
        "{}: its {processors} processors with different CPUID values do not fit into the hypervisor's {} bytes for them",
        file.display(), slot::BYTES
    )]
    Long { file: PathBuf, processors: usize },
    /// The hypervisor's file.
    #[error("cannot fill the recorded processor in: {} {why}", file.display())]
    Hypervisor { file: PathBuf, why: String },
}

/// Recorded processors: those of a machine, the first one its boot processor.
#[derive(Debug)]
pub struct Recorded {
    /// What was typed.
    pub file: PathBuf,
    /// The brand of the first one, or its maker, family and model.
    pub name: String,
    /// The model whose behaviour the first one has.
    pub nearest: Model,
    /// Of the first one, whether it is of that model's microarchitecture.
    pub own: bool,
    /// General-purpose counters of the first one.
    pub counters: u32,
    /// What of the first one is not known from the file, and what of it is not shown.
    pub inferred: Vec<String>,
    /// The first one.
    pub leaves: Leaves,
    processors: Vec<Processor<'static>>,
}

impl PartialEq for Recorded {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.processors == other.processors
    }
}

impl Eq for Recorded {}

impl Recorded {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, it is none of the forms, or the processor cannot be emulated.
    pub fn read(file: &Path) -> Result<Self, RecordingError> {
        let bytes = std::fs::read(file)
            .map_err(|error| RecordingError::Read { file: file.to_path_buf(), error })?;
        let (processors, inferred) = parse(&bytes, file)?;
        Self::of(file, processors, inferred)
    }

    /// The processors of a recording that is there already. `inferred`: what of their leaves was not recorded.
    ///
    /// # Errors
    /// One cannot be emulated, or they do not fit.
    pub fn of(
        file: &Path,
        leaves: Vec<Leaves>,
        inferred: Vec<String>,
    ) -> Result<Self, RecordingError> {
        Self::with_registers(file, leaves, Vec::new(), inferred)
    }

    /// The same with registers of each that the machine's firmware left, by processor.
    ///
    /// # Errors
    /// As for [`Recorded::of`].
    pub fn with_registers(
        file: &Path,
        leaves: Vec<Leaves>,
        registers: Vec<Vec<(u32, u64)>>,
        mut inferred: Vec<String>,
    ) -> Result<Self, RecordingError> {
        let path = || file.to_path_buf();
        let answers: Vec<&'static [Answer]> =
            leaves.iter().map(|one| &*Vec::leak(one.answers())).collect();
        let recordings: Vec<Recording> = (0..)
            .zip(&answers)
            .map(|(number, answers)| {
                Recording::of(answers).map_err(|error| RecordingError::Unfit {
                    file: path(),
                    number,
                    error,
                })
            })
            .collect::<Result<_, _>>()?;
        let mut registers = registers.into_iter();
        let processor = |answers| {
            let registers = &*Vec::leak(registers.next().unwrap_or_default());
            Processor { answers, registers }
        };
        let processors = without_repeats(answers.into_iter().map(processor).collect());
        let count = processors.len();
        let words = 1 + processors.iter().map(Processor::words).sum::<usize>();
        if slot::MARK.len() + 4 * words > slot::BYTES {
            return Err(RecordingError::Long { file: path(), processors: count });
        }
        let first = &recordings[0];
        first.inferred(|line| inferred.push(line.to_string()));
        if leaves.len() > 1 {
            inferred.push(format!(
                "{} processors are recorded; those beyond the machine's are not used",
                leaves.len()
            ));
        }
        Ok(Self {
            file: path(),
            name: name(&leaves[0]),
            nearest: first.nearest(),
            own: first.is_of_nearest(),
            counters: first.spec().counters().count_ones(),
            inferred,
            leaves: leaves.into_iter().next().expect("one at least"),
            processors,
        })
    }

    /// The vendor that QEMU's own processor has to have for it.
    #[must_use]
    pub fn vendor(&self) -> Vendor {
        self.nearest.spec().identity.as_ref().map_or(Vendor::Intel, |identity| identity.vendor)
    }

    /// Puts it into the hypervisor's file at `path`.
    ///
    /// # Errors
    /// The file cannot be read or written, or is not a hypervisor.
    pub fn fill(&self, path: &Path) -> Result<(), RecordingError> {
        let failed = |why: String| RecordingError::Hypervisor { file: path.to_path_buf(), why };
        let of_system = |error: std::io::Error| failed(format!("({error})"));
        let mut bytes = std::fs::read(path).map_err(of_system)?;
        if !slot::fill(&mut bytes, &self.processors) {
            return Err(failed("has no place for it".to_string()));
        }
        std::fs::write(path, bytes).map_err(of_system)
    }

    /// The line that names it.
    #[must_use]
    pub fn what(&self) -> String {
        format!("{} of {}, as {}", self.name, self.file.display(), self.nearest.spec().name)
    }
}

/// Processors at the end that answer as the one before them are left out: the last one's answers hold for those after it.
fn without_repeats(mut list: Vec<Processor<'static>>) -> Vec<Processor<'static>> {
    while let [.., one, last] = list[..]
        && same(one.answers, last.answers)
        && one.registers == last.registers
    {
        list.pop();
    }
    list
}

/// Whether two processors differ in nothing but their numbers: leaf 1 EBX\[31:24\], EDX of the topology's leaves, EAX of
/// 0x8000001E.
fn same(one: &[Answer], other: &[Answer]) -> bool {
    let plain = |answer: &Answer| {
        let mut plain = *answer;
        match answer.leaf {
            1 => plain.registers[1] &= 0xff_ffff,
            0xb | 0x1f | 0x8000_0026 => plain.registers[3] = 0,
            0x8000_001e => plain.registers[0] = 0,
            _ => {}
        }
        plain
    };
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| plain(one) == plain(other))
}

fn parse(bytes: &[u8], file: &Path) -> Result<(Vec<Leaves>, Vec<String>), RecordingError> {
    let path = || file.to_path_buf();
    let content = String::from_utf8_lossy(bytes);
    let error = match text::parse(&content) {
        Ok(processors) => return Ok((processors, Vec::new())),
        Err(error) => error,
    };
    let Ok(document) = page::read(bytes, &file.display().to_string()) else {
        return Err(RecordingError::Text { file: path(), error });
    };
    report::processors(document.records())
        .map_err(|error| RecordingError::Machine { file: path(), error })?
        .ok_or_else(|| RecordingError::NoMachine { file: path() })
}

/// The brand, without the blanks around it.
fn name(leaves: &Leaves) -> String {
    let bytes: Vec<u8> = (0x8000_0002..=0x8000_0004)
        .flat_map(|leaf| leaves.recorded(leaf, 0).unwrap_or_default())
        .flat_map(u32::to_le_bytes)
        .take_while(|byte| *byte != 0)
        .collect();
    let brand = String::from_utf8_lossy(&bytes);
    let brand = brand.split_whitespace().collect::<Vec<_>>().join(" ");
    if brand.is_empty() {
        let [signature, ..] = leaves.answer(1, 0);
        return format!("a processor with the signature {signature:#x}");
    }
    crate::text::printable(&brand).into_owned()
}

impl Recorded {
    /// The machine of a report, with what its firmware had left in the PMU's registers, if the report has that.
    ///
    /// # Errors
    /// As for [`Recorded::read`].
    pub fn of_report(file: &Path, records: &[Numbered]) -> Result<Self, RecordingError> {
        let (leaves, inferred) = report::processors(records)
            .map_err(|error| RecordingError::Machine { file: file.to_path_buf(), error })?
            .ok_or_else(|| RecordingError::NoMachine { file: file.to_path_buf() })?;
        let left = |cpu: usize| {
            let found = report::registers(records, cpu as u32, true)?;
            Some(found.values.iter().map(|[msr, value]| (msr.0 as u32, value.0)).collect())
        };
        let registers = (0..leaves.len()).map(|cpu| left(cpu).unwrap_or_default()).collect();
        Self::with_registers(file, leaves, registers, inferred)
    }
}

#[cfg(test)]
mod tests;
