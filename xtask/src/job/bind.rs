//! For whom a set of a count is counted: `bind`.

use super::errors::Place;
use super::file::Text;
use super::workload::{WorkloadFile, place};
use protocol::core_kind::CoreKind;
use protocol::job::count::Bind;
use protocol::job::limits::MAX_CPU;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use toml::Spanned;

/// What it can be.
const FORMS: &str = "\"system\", \"all-cpus\", { cpu = N }, { core = KIND, cpu = N }, { task = NAME } or { tasks = [NAMES] }";

/// As written.
#[derive(Clone, Debug)]
pub(super) enum RawBind {
    System,
    AllCpus,
    Cpu(u16),
    Core(CoreKind, u16),
    Tasks(Vec<Spanned<String>>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Table {
    cpu: Option<u16>,
    core: Option<CoreKind>,
    task: Option<Spanned<String>>,
    tasks: Option<Vec<Spanned<String>>>,
}

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawBind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawBind;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawBind, E> {
                match text {
                    "system" => Ok(RawBind::System),
                    "all-cpus" => Ok(RawBind::AllCpus),
                    _ => Err(E::custom(format!("bind is `{text}`; it must be {FORMS}"))),
                }
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawBind, M::Error> {
                match Table::deserialize(MapAccessDeserializer::new(map))? {
                    Table { cpu: Some(cpu), core: None, task: None, tasks: None } => {
                        Ok(RawBind::Cpu(cpu))
                    }
                    Table { cpu, core: Some(core), task: None, tasks: None } => {
                        Ok(RawBind::Core(core, cpu.unwrap_or(0)))
                    }
                    Table { cpu: None, core: None, task: Some(task), tasks: None } => {
                        Ok(RawBind::Tasks(vec![task]))
                    }
                    Table { cpu: None, core: None, task: None, tasks: Some(tasks) } => {
                        Ok(RawBind::Tasks(tasks))
                    }
                    _ => Err(M::Error::custom(format!("bind must be one of {FORMS}"))),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The same with its places in the file.
#[derive(Clone, Debug)]
pub(super) enum BindFile {
    /// Nothing was said.
    Default,
    System(Place),
    AllCpus(Place),
    Cpu(Place, u16),
    Core(Place, CoreKind, u16),
    Tasks(Place, Vec<(Place, String)>),
}

impl BindFile {
    /// Notes the places.
    pub(super) fn decide(raw: Option<Spanned<RawBind>>, text: &Text, source: &str) -> Self {
        let Some(raw) = raw else { return Self::Default };
        let whole = place(text, source, &raw.span());
        match raw.into_inner() {
            RawBind::System => Self::System(whole),
            RawBind::AllCpus => Self::AllCpus(whole),
            RawBind::Cpu(cpu) => Self::Cpu(whole, cpu),
            RawBind::Core(core, cpu) => Self::Core(whole, core, cpu),
            RawBind::Tasks(tasks) => {
                let named =
                    |task: Spanned<String>| (place(text, source, &task.span()), task.into_inner());
                Self::Tasks(whole, tasks.into_iter().map(named).collect())
            }
        }
    }

    /// Whether it names a kind of core.
    pub(super) fn names_core(&self) -> bool {
        matches!(self, Self::Core(..))
    }

    /// Where it stands, if it does.
    pub(super) fn place(&self) -> Option<&Place> {
        match self {
            Self::Default => None,
            Self::System(place)
            | Self::AllCpus(place)
            | Self::Cpu(place, _)
            | Self::Core(place, ..)
            | Self::Tasks(place, _) => Some(place),
        }
    }

    /// With the numbers of the tasks.
    ///
    /// # Errors
    /// A task or a processor that cannot be, and its place.
    pub(super) fn bind(&self, workload: &WorkloadFile) -> Result<Bind, (Place, String)> {
        Ok(match self {
            Self::Default | Self::System(_) => Bind::System,
            Self::AllCpus(_) => Bind::AllProcessors,
            Self::Cpu(_, cpu) if *cpu <= MAX_CPU => Bind::Processor(*cpu),
            Self::Core(_, core, cpu) if *cpu <= MAX_CPU => Bind::Core(*core, *cpu),
            Self::Cpu(place, cpu) | Self::Core(place, _, cpu) => {
                let message = format!("bind names processor {cpu}; the numbers are 0 to {MAX_CPU}");
                return Err((place.clone(), message));
            }
            Self::Tasks(place, tasks) if tasks.is_empty() => {
                return Err((place.clone(), "bind names no task".to_string()));
            }
            Self::Tasks(_, tasks) => {
                let mut numbers = Vec::new();
                for (place, name) in tasks {
                    let number = number(workload, name);
                    let number = number.map_err(|message| (place.clone(), message))?;
                    if numbers.contains(&number) {
                        return Err((place.clone(), format!("bind names task `{name}` twice")));
                    }
                    numbers.push(number);
                }
                Bind::Tasks(numbers)
            }
        })
    }
}

fn number(workload: &WorkloadFile, name: &str) -> Result<u16, String> {
    let all = || workload.tasks.iter().map(|task| task.name.as_str());
    let found = all().position(|task| task == name).and_then(|at| u16::try_from(at).ok());
    found.ok_or_else(|| {
        let known: Vec<&str> = all().collect();
        format!("bind names task `{name}`, which does not exist; there are: {}", known.join(", "))
    })
}
