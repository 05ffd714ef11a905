//! apt's list of package sources, read so that a further suite of the same archive can be named without
//! naming the archive.

/// Derives, from the text of one sources file, the entry for `suite` of the archive that serves
/// `codename`. Understands both of apt's formats; the result is in the same one.
pub(super) fn with_suite(text: &str, codename: &str, suite: &str) -> Option<String> {
    stanza(text, codename, suite).or_else(|| line(text, codename, suite))
}

/// deb822: paragraphs of `Key: value` lines.
fn stanza(text: &str, codename: &str, suite: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut paragraphs = lines.split(|line| line.trim().is_empty());
    let value = |paragraph: &[&str], key: &str| {
        let line = paragraph.iter().find(|line| line.to_lowercase().starts_with(key));
        line.and_then(|line| line.split_once(':')).map(|(_, v)| v.trim().to_string())
    };
    let serves = |paragraph: &&[&str]| {
        let words = |key| value(paragraph, key).unwrap_or_default();
        words("types:").split_whitespace().any(|word| word == "deb")
            && words("suites:").split_whitespace().any(|word| word == codename)
            && !words("enabled:").eq_ignore_ascii_case("no")
    };
    let paragraph = paragraphs.find(serves)?;
    let mut out = String::new();
    for line in paragraph {
        if line.to_lowercase().starts_with("suites:") {
            out += &format!("Suites: {suite}\n");
        } else if line.to_lowercase().starts_with("types:") {
            out += "Types: deb\n";
        } else {
            out += &format!("{line}\n");
        }
    }
    Some(out)
}

/// One line each: `deb [options] URI suite components`.
fn line(text: &str, codename: &str, suite: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (options, rest) = inner.split_once(']')?;
                (format!("[{options}] "), rest)
            }
            None => (String::new(), rest),
        };
        let mut words = rest.split_whitespace();
        let uri = words.next()?;
        if words.next()? != codename {
            return None;
        }
        let components: Vec<&str> = words.collect();
        Some(format!("deb {options}{uri} {suite} {}\n", components.join(" ")))
    })
}

/// File name extension that apt wants for the format of `entry`.
pub(super) fn extension(entry: &str) -> &'static str {
    if entry.starts_with("deb ") { "list" } else { "sources" }
}

/// Whether some entry of `text` names `suite`.
pub(super) fn names(text: &str, suite: &str) -> bool {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| line.starts_with("Suites:") || line.starts_with("deb "))
        .any(|line| line.split_whitespace().any(|word| word == suite))
}

/// The command that configures the derived `entry`, with `&&` after it.
pub(super) fn commands(entry: &str, suite: &str) -> String {
    let lines: Vec<String> = entry.lines().map(|line| format!("'{line}'")).collect();
    let file = format!("/etc/apt/sources.list.d/{suite}.{}", extension(entry));
    format!("printf '%s\\n' {} | sudo tee {file} && ", lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_is_configured_is_found() {
        let text = "# Suites: trixie\nSuites: bookworm bookworm-updates\n#deb m a main\ndeb [x=y] m b main\n";
        for (suite, expected) in [
            ("bookworm", true),
            ("bookworm-updates", true),
            ("b", true),
            ("a", false),
            ("trixie", false),
        ] {
            assert_eq!(names(text, suite), expected, "{suite}");
        }
    }

    #[test]
    fn the_commands_write_the_entry_as_it_is() {
        let entry = "Types: deb\nURIs: mirror:/a\nSuites: x-backports\nComponents: main\n";
        let typed = commands(entry, "x-backports");
        assert_eq!(
            typed,
            "printf '%s\\n' 'Types: deb' 'URIs: mirror:/a' 'Suites: x-backports' 'Components: main' \
             | sudo tee /etc/apt/sources.list.d/x-backports.sources && "
        );
        // What a shell makes of it is the entry.
        let printf = typed.split(" | ").next().unwrap();
        let said = std::process::Command::new("sh").args(["-c", printf]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), entry);
    }

    #[test]
    fn a_paragraph_keeps_everything_but_its_suites() {
        let text = "# comment\nTypes: deb deb-src\nURIs: mirror:/archive\nSuites: bookworm \
                    bookworm-updates\nComponents: main\nSigned-By: /key.gpg\n\nTypes: deb\nURIs: \
                    mirror:/security\nSuites: bookworm-security\n";
        let seen = with_suite(text, "bookworm", "bookworm-backports").unwrap();
        assert_eq!(
            seen,
            "Types: deb\nURIs: mirror:/archive\nSuites: bookworm-backports\nComponents: \
             main\nSigned-By: /key.gpg\n"
        );
        assert_eq!(extension(&seen), "sources");
        assert_eq!(with_suite(text, "trixie", "x"), None);
    }

    #[test]
    fn a_disabled_paragraph_and_another_vendors_are_passed_over() {
        let text = "Types: deb\nEnabled: no\nURIs: a\nSuites: bookworm\n\nTypes: deb\nURIs: \
                    b\nSuites: nodistro\n";
        assert_eq!(with_suite(text, "bookworm", "x"), None);
    }

    #[test]
    fn a_line_keeps_its_options() {
        let text = "# deb mirror:/old bookworm main\ndeb-src mirror:/a bookworm main\n\
                    deb [signed-by=/k arch=amd64] mirror:/a bookworm main contrib\n";
        let seen = with_suite(text, "bookworm", "trixie").unwrap();
        assert_eq!(seen, "deb [signed-by=/k arch=amd64] mirror:/a trixie main contrib\n");
        assert_eq!(extension(&seen), "list");
    }
}
