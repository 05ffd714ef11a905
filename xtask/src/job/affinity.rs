//! Which processors a task may run on: `cpus`.

use super::errors::Place;
use protocol::job::affinity::Affinity;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// What it can be.
const FORMS: &str = "\"any\" or a list of processors, as [0, 2]";

/// As written.
#[derive(Clone, Debug)]
pub(super) struct RawAffinity(pub Affinity);

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawAffinity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawAffinity;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RawAffinity, E> {
                match text {
                    "any" => Ok(RawAffinity(Affinity::Any)),
                    _ => Err(E::custom(format!("cpus is `{text}`; it must be {FORMS}"))),
                }
            }

            fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<RawAffinity, S::Error> {
                let cpus = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(RawAffinity(Affinity::These(cpus)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The same with its place in the file.
#[derive(Clone, Debug)]
pub(super) struct AffinityFile {
    pub(super) place: Place,
    pub(super) cpus: Affinity,
}

impl AffinityFile {
    /// The processors that it names.
    pub(super) fn named(&self) -> &[u16] {
        match &self.cpus {
            Affinity::Any => &[],
            Affinity::These(cpus) => cpus,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::super::{Purpose, pack};

    fn refused(text: &str) -> String {
        let packed = parse(text, "x.toml").and_then(|file| pack(&file, Purpose::Qemu).map(|_| ()));
        packed.unwrap_err().to_string()
    }

    #[test]
    fn i8_c3_a_bad_affinity_is_refused_with_line_and_column() {
        let task = |rest: &str| format!("[[run]]\n[[run.task]]\nname = \"t\"\nasm = \"\"\n{rest}");
        for (text, parts) in [
            (
                task("cpus = \"all\""),
                &["line 5, column 8", "cpus is `all`; it must be \"any\" or"][..],
            ),
            (task("cpus = 3"), &["line 5, column 8", "\"any\" or a list of processors"]),
            (task("cpus = [0, -1]"), &["line 5", "-1"]),
            (
                task("cpus = []"),
                &["x.toml:5:8", "task `t`", "the number of processors in cpus is 0"],
            ),
            (task("cpus = [1, 1]"), &["x.toml:5:8", "task `t`: cpus names a processor twice"]),
            (task("cpus = [0, 256]"), &["x.toml:5:8", "a processor in cpus is 256"]),
            (task("cpus = [0]\ncpu = 1"), &["x.toml:5:8", "either cpu or cpus"]),
            (task("cpus = [0]\ncore = \"efficient\""), &["x.toml:5:8", "core is given where"]),
        ] {
            let error = refused(&text);
            for part in parts {
                assert!(error.contains(part), "{text}\n{error}\nlacks {part}");
            }
        }
    }

    #[test]
    fn i8_c3_what_does_not_move_with_a_task_is_refused_where_its_processors_stand() {
        let task = |kind: &str, keys: &str, rest: &str| {
            format!(
                "[[{kind}]]\n{keys}\n[[{kind}.task]]\nname = \"t\"\nring = 3\nasm = \"here: nop\"\ncpus = \"any\"\n{rest}"
            )
        };
        let every = "events = [{ event = \"instructions:u\", every = 100 }]";
        let series = "events = [\"instructions\"]\ninterval-ns = 2_000_000";
        let gate = "events = [\"instructions:u\"]\nstart-at = [\"t:here\"]";
        let passes = "events = [\"instructions:u\"]\npasses = 3";
        for (text, part) in [
            (task("count", every, ""), "every and preset are of one processor's counter"),
            (task("count", series, ""), "rows of the series"),
            (task("count", gate, ""), "the debug registers of start-at"),
            (task("count", passes, ""), "passes ends counting"),
            (
                task("sample", "events = [\"instructions:u\"]\nperiod = 1000", ""),
                "of a sample are one processor's",
            ),
        ] {
            let error = refused(&text);
            let line = 1 + text.lines().position(|line| line.starts_with("cpus")).unwrap();
            let place = format!("x.toml:{line}:8");
            assert!(
                error.contains(&place) && error.contains(part),
                "{text}\n{error}\nlacks {place} or {part}"
            );
        }
    }

    #[test]
    fn i8_c3_a_machine_gets_as_many_processors_as_tasks_name() {
        let job = "[[run]]\n[[run.task]]\nname = \"t\"\nasm = \"\"\ncpus = [0, 3]";
        let file = parse(job, "x.toml").unwrap();
        assert_eq!(file.needed_cpus(), 4);
        let item = file.items()[0];
        assert!(item.check_cpus(4).is_ok());
        let error = item.check_cpus(2).unwrap_err().to_string();
        assert!(
            error.contains("it is to run on processor 3") && error.contains("--cpus 4"),
            "{error}"
        );
    }
}
