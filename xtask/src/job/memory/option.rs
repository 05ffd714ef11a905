//! `--memory-area NAME=SIZE,KEY=VALUE…`.

use super::{ChaseFile, Digits, FillFile, MemoryFile, Raw};
use std::path::Path;
use std::str::FromStr;
use toml::{Table, Value};

/// What may stand behind name and size.
const KEYS: &str = "page-size=4k|2m|1g, memory-type=wb|wt|wc|uc, pattern=HEX, file=PATH, \
                    chase=random|forward|backward, stride=BYTES, seed=NUMBER";

impl FromStr for MemoryFile {
    type Err = String;

    /// `list=64M,page-size=2m,chase=random,stride=64,seed=1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let (name, size) = match first.split_once('=') {
            Some((name, size)) => (name.trim(), Some(Value::from(size.trim()))),
            None => (first, None),
        };
        let mut raw = Table::new();
        raw.insert("name".to_string(), Value::from(name));
        raw.extend(size.map(|size| ("size".to_string(), size)));
        let (mut fill, mut chase) = (None, Table::new());
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| unknown(part))?;
            let filled = match key {
                "page-size" | "memory-type" => {
                    raw.insert(key.to_string(), Value::from(value));
                    continue;
                }
                "stride" | "seed" => {
                    let number: i64 =
                        value.parse().map_err(|_| format!("{key}: `{value}` is no number"))?;
                    chase.insert(key.to_string(), Value::from(number));
                    continue;
                }
                "chase" => {
                    chase.insert("order".to_string(), Value::from(value));
                    continue;
                }
                "pattern" => FillFile::Pattern(Digits::try_from(value.to_string())?),
                "file" => FillFile::File(Path::new(value).to_path_buf()),
                _ => return Err(unknown(part)),
            };
            if fill.replace(filled).is_some() {
                return Err("give one of pattern and file, once".to_string());
            }
        }
        let fill = match (fill, chase.is_empty()) {
            (Some(_), false) => return Err("give one of pattern, file and chase".to_string()),
            (fill, true) => fill.unwrap_or_default(),
            (None, false) => {
                FillFile::Chase(Value::Table(chase).try_into::<ChaseFile>().map_err(message)?)
            }
        };
        let raw = Value::Table(raw).try_into::<Raw>().map_err(message)?;
        let mut memory = Self::try_from(Raw { fill, ..raw })?;
        // A path of the command line is one from where the command is given.
        memory.based_on(&std::env::current_dir().unwrap_or_default());
        Ok(memory)
    }
}

fn message(error: toml::de::Error) -> String {
    error.message().to_string()
}

fn unknown(part: &str) -> String {
    format!("`{part}`: it must be NAME=SIZE, then any of {KEYS}")
}
