//! apt's list of package sources, read so that a further suite of the same archive can be named without
//! naming the archive.

/// A file of package sources.
pub(super) struct SourcesFile {
    /// Its name, without folders.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Files in which a distribution configures its own archive.
const OWN_FILES: [&str; 3] = ["debian.sources", "ubuntu.sources", "sources.list"];
/// What an archive of a distribution has beside the release, after its code name. Others' archives for the release do not.
const SUITES: [&str; 3] = ["updates", "security", "backports"];

/// Derives the entry for `suite` of the distribution's archive, which serves `codename`. Understands both of apt's formats; the
/// result is in the same one.
///
/// Others serve the same code name, each from an archive without backports. So of all entries that do, the one that is most
/// likely the distribution's is taken.
pub(super) fn with_suite(files: &[SourcesFile], codename: &str, suite: &str) -> Option<String> {
    let mut best: Option<(u8, String)> = None;
    for file in files {
        let sources = sources(&file.text);
        let has_more = |source: &Source| {
            SUITES.iter().any(|more| source.suites.contains(&&*format!("{codename}-{more}")))
        };
        for source in sources.iter().filter(|source| source.suites.contains(&codename)) {
            let is_same = |other: &&Source| other.uris == source.uris;
            let signs = [
                sources.iter().filter(is_same).any(has_more),
                OWN_FILES.contains(&&*file.name),
                sources.iter().any(has_more),
            ];
            let rank = signs.iter().fold(0, |rank, sign| 2 * rank + u8::from(*sign));
            if best.as_ref().is_none_or(|(other, _)| rank > *other) {
                best = Some((rank, source.with_suite(suite)));
            }
        }
    }
    best.map(|(_, entry)| entry)
}

/// A source of binary packages.
struct Source<'a> {
    uris: Vec<&'a str>,
    suites: Vec<&'a str>,
    form: Form<'a>,
}

enum Form<'a> {
    /// deb822: a key with the lines of its value each.
    Paragraph(Vec<Vec<&'a str>>),
    /// One line: `deb [options] URI suite components`.
    Line { options: Option<&'a str>, components: Vec<&'a str> },
}

/// Those of a text that are switched on.
fn sources(text: &str) -> Vec<Source<'_>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut sources: Vec<Source> = lines.iter().filter_map(|line| self::line(line)).collect();
    let paragraphs = lines.split(|line| line.trim().is_empty());
    sources.extend(paragraphs.filter_map(paragraph));
    sources
}

fn paragraph<'a>(lines: &[&'a str]) -> Option<Source<'a>> {
    let mut fields: Vec<Vec<&str>> = Vec::new();
    for line in lines.iter().filter(|line| self::line(line).is_none()) {
        match fields.last_mut() {
            // A value goes on where a line begins with a space.
            Some(field) if line.starts_with([' ', '\t']) => field.push(line),
            _ => fields.push(vec![line]),
        }
    }
    let words = |key: &str| -> Vec<&'a str> {
        let field = fields.iter().find(|field| is_key(field, key));
        let lines = field.into_iter().flatten().enumerate();
        lines
            .flat_map(|(index, &line)| {
                let value =
                    if index == 0 { line.split_once(':').map_or("", |(_, v)| v) } else { line };
                value.split_whitespace()
            })
            .collect()
    };
    // apt's words for no.
    let no = ["no", "false", "without", "off", "disable", "0"];
    let is_off = words("enabled").iter().any(|word| no.contains(&&*word.to_lowercase()));
    if is_off || !words("types").contains(&"deb") {
        return None;
    }
    let (uris, suites) = (words("uris"), words("suites"));
    Some(Source { uris, suites, form: Form::Paragraph(fields) })
}

fn is_key(field: &[&str], key: &str) -> bool {
    let name = field[0].split_once(':').map(|(name, _)| name.trim());
    name.is_some_and(|name| name.eq_ignore_ascii_case(key))
}

fn line(line: &str) -> Option<Source<'_>> {
    let rest = line.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(inner) => {
            let (options, rest) = inner.split_once(']')?;
            (Some(options), rest)
        }
        None => (None, rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    let form = Form::Line { options, components: words.collect() };
    Some(Source { uris: vec![uri], suites: vec![suite], form })
}

impl Source<'_> {
    /// The same for another suite.
    fn with_suite(&self, suite: &str) -> String {
        match &self.form {
            Form::Paragraph(fields) => {
                let mut out = String::new();
                for field in fields {
                    if is_key(field, "suites") {
                        out += &format!("Suites: {suite}\n");
                    } else if is_key(field, "types") {
                        out += "Types: deb\n";
                    } else {
                        field.iter().for_each(|line| out += &format!("{line}\n"));
                    }
                }
                out
            }
            Form::Line { options, components } => {
                let options = options.map_or(String::new(), |options| format!("[{options}] "));
                format!("deb {options}{} {suite} {}\n", self.uris[0], components.join(" "))
            }
        }
    }
}

/// File name extension that apt wants for the format of `entry`.
pub(super) fn extension(entry: &str) -> &'static str {
    if entry.starts_with("deb ") { "list" } else { "sources" }
}

/// Whether some entry of `text`, that of one file, names `suite` and is switched on.
pub(super) fn names(text: &str, suite: &str) -> bool {
    sources(text).iter().any(|source| source.suites.contains(&suite))
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

    /// What is derived from these files, given by name and text.
    fn derived(files: &[(&str, &str)], codename: &str, suite: &str) -> Option<String> {
        let file = |(name, text): &(&str, &str)| SourcesFile {
            name: (*name).to_string(),
            text: (*text).to_string(),
        };
        with_suite(&files.iter().map(file).collect::<Vec<_>>(), codename, suite)
    }

    #[test]
    fn a_suite_that_is_configured_is_found() {
        let text = "# Suites: trixie\nTypes: deb\nSuites: bookworm bookworm-updates\n#deb m a main\ndeb [x=y] m b main\n\n\
                    Types: deb\nsuites: x\n y\nURIs: m\n\nTypes: deb\nSuites: bookworm-backports\nenabled: No\n\n\
                    Types: deb-src\nSuites: source\n";
        for (suite, expected) in [
            ("bookworm", true),
            ("bookworm-updates", true),
            ("b", true),
            ("a", false),
            ("trixie", false),
            ("x", true),
            ("y", true),
            // Switched off, and not of binary packages.
            ("bookworm-backports", false),
            ("source", false),
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
        let seen = derived(&[("a.sources", text)], "bookworm", "bookworm-backports").unwrap();
        assert_eq!(
            seen,
            "Types: deb\nURIs: mirror:/archive\nSuites: bookworm-backports\nComponents: \
             main\nSigned-By: /key.gpg\n"
        );
        assert_eq!(extension(&seen), "sources");
        assert_eq!(derived(&[("a.sources", text)], "trixie", "x"), None);
    }

    #[test]
    fn a_disabled_paragraph_and_another_vendors_are_passed_over() {
        let text = "Types: deb\nEnabled: no\nURIs: a\nSuites: bookworm\n\nTypes: deb\nURIs: \
                    b\nSuites: nodistro\n";
        assert_eq!(derived(&[("a.sources", text)], "bookworm", "x"), None);
    }

    #[test]
    fn a_line_keeps_its_options() {
        let text = "# deb mirror:/old bookworm main\ndeb-src mirror:/a bookworm main\n\
                    deb [signed-by=/k arch=amd64] mirror:/a bookworm main contrib\n";
        let seen = derived(&[("a.sources", text)], "bookworm", "trixie").unwrap();
        assert_eq!(seen, "deb [signed-by=/k arch=amd64] mirror:/a trixie main contrib\n");
        assert_eq!(extension(&seen), "list");
    }

    /// Files are read in the order of their names.
    #[test]
    fn another_vendors_archive_of_the_same_release_is_not_taken() {
        let vendor = "Types: deb\nURIs: mirror:/vendor\nSuites: bookworm\nComponents: main\n";
        let vendor_line = "deb [signed-by=/k] mirror:/vendor bookworm main\n";
        let own = "Types: deb\nURIs: mirror:/own\nSuites: bookworm bookworm-updates\nComponents: main\n\n\
                   Types: deb\nURIs: mirror:/security\nSuites: bookworm-security\nComponents: main\n";
        let plain = "deb mirror:/own bookworm main\n";
        let lines = "deb mirror:/vendor bookworm main\ndeb mirror:/own bookworm main\n\
                     deb mirror:/own bookworm-updates main\n";
        let security =
            "deb mirror:/own bookworm main\ndeb mirror:/security bookworm-security main\n";
        for files in [
            // Known by the suites that the archive has,
            &[("azure-cli.sources", vendor), ("debian.sources", own)][..],
            &[("azure-cli.sources", vendor), ("mirror.sources", own)],
            &[("adoptium.list", vendor_line), ("mirror.list", lines)],
            &[("sources.list", lines)],
            // by the name of its file,
            &[("adoptium.list", vendor_line), ("sources.list", plain), ("zulu.list", vendor_line)],
            // by what stands beside it.
            &[("adoptium.list", vendor_line), ("mirror.list", security)],
        ] {
            let entry = derived(files, "bookworm", "bookworm-backports").unwrap();
            assert!(
                entry.contains("mirror:/own") && !entry.contains("vendor"),
                "{files:?}: {entry}"
            );
            assert!(entry.contains("bookworm-backports"), "{entry}");
        }
    }

    #[test]
    fn values_of_several_lines_are_kept_or_replaced_as_a_whole() {
        let text = "Types:\n deb\nURIs: mirror:/a\nSuites: bookworm\n bookworm-updates\nSigned-By:\n BEGIN\n .\n END\n";
        assert_eq!(
            derived(&[("debian.sources", text)], "bookworm", "x").unwrap(),
            "Types: deb\nURIs: mirror:/a\nSuites: x\nSigned-By:\n BEGIN\n .\n END\n"
        );
    }
}
