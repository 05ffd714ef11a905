//! What the application is to do: a small text file on the stick, `barecount.conf`.
//!
//! ```text
//! # One key a line, white space, the value.
//! save    on
//! image   1f2e3d4c
//! upload  http://10.0.0.1/reports/
//! ```

use crate::upload::{Target, TargetError};
use alloc::string::{String, ToString};
use thiserror::Error;

/// What the file says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Whether the report is saved on the stick.
    pub save: bool,
    /// Where it is sent.
    pub upload: Option<Target>,
    /// CRC-32 of the ramdisk.
    pub image: u32,
    /// The program to start then.
    pub next: String,
}

impl Default for Settings {
    /// What is done without the file: nothing but starting the next boot loader.
    fn default() -> Self {
        Self { save: false, upload: None, image: 0, next: crate::NEXT.to_string() }
    }
}

/// What is wrong with the file.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum SettingsError {
    /// A key that means nothing here.
    #[error("line {line}: `{key}` is none of save, image, next, upload")]
    UnknownKey { line: usize, key: String },
    /// A key alone, or with what is none of its values.
    #[error("line {line}: `{key}` is {expected}, not `{value}`")]
    Value { line: usize, key: String, value: String, expected: &'static str },
    /// A key that was there before.
    #[error("line {line}: `{key}` is given twice")]
    Twice { line: usize, key: String },
    /// What is not a folder's URL.
    #[error("line {line}: `upload`: {reason}")]
    Upload { line: usize, reason: TargetError },
}

/// Reads the file's text.
///
/// # Errors
/// The first line that is wrong, with its number, its key and the reason.
pub fn parse(text: &str) -> Result<Settings, SettingsError> {
    let (mut save, mut image, mut next, mut upload) = (None, None, None, None);
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = value.trim();
        let place = match key {
            "save" => &mut save,
            "image" => &mut image,
            "next" => &mut next,
            "upload" => &mut upload,
            _ => return Err(SettingsError::UnknownKey { line: number, key: key.to_string() }),
        };
        if place.replace((number, value)).is_some() {
            return Err(SettingsError::Twice { line: number, key: key.to_string() });
        }
    }
    let wrong = |key: &str, (line, value): (usize, &str), expected| SettingsError::Value {
        line,
        key: key.to_string(),
        value: value.to_string(),
        expected,
    };
    let mut settings = Settings::default();
    if let Some(said) = save {
        settings.save = match said.1 {
            "on" => true,
            "off" => false,
            _ => return Err(wrong("save", said, "`on` or `off`")),
        };
    }
    if let Some(said) = image {
        let parsed = u32::from_str_radix(said.1, 16);
        settings.image = parsed.map_err(|_| wrong("image", said, "a number of base 16"))?;
    }
    if let Some(said) = next {
        let name = said.1.replace('/', "\\");
        let fits = name.chars().all(|letter| u32::from(letter) <= 0xffff);
        if !fits || !name.starts_with('\\') || name.ends_with('\\') {
            return Err(wrong("next", said, "a file's path from the root"));
        }
        settings.next = name;
    }
    if let Some((line, url)) = upload {
        let target = Target::parse(url);
        settings.upload = Some(target.map_err(|reason| SettingsError::Upload { line, reason })?);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_with_everything() {
        let text = "\u{feff}# a comment\r\nsave on\r\nimage 1F2e3d4c\r\n\r\nnext\t/EFI/barecount/pmu.efi\r\n";
        let next = crate::PMU_APPLICATION.into();
        let expected = Settings { save: true, image: 0x1f2e_3d4c, next, upload: None };
        assert_eq!(parse(text), Ok(expected));
        let upload = parse("upload tftp://10.0.2.2/r/").unwrap().upload;
        assert_eq!(upload.map(|target| target.url("x")).as_deref(), Some("tftp://10.0.2.2/r/x"));
        assert_eq!(parse("save off"), Ok(Settings::default()));
    }

    #[test]
    fn errors_name_line_key_and_reason() {
        let table = [
            ("\nstore on", "line 2: `store` is none of save, "),
            ("save on\nsave off", "line 2: `save` is given twice"),
            ("save", "line 1: `save` is `on` or `off`, not ``"),
            ("image xyz", "line 1: `image` is a number of base 16, not `xyz`"),
            ("\nupload http://a", "line 2: `upload`: `http://a` does not end with a slash"),
            ("next loader.efi", "line 1: `next` is a file's path from the root, not `loader.efi`"),
        ];
        for (text, part) in table {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "((save|image|next|upload|[a-z]*)[ \t]*\\PC{0,20}[\r\n]*){0,6}") {
            let _ = parse(&text);
        }
    }
}
