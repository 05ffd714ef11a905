//! Debian packages, with apt.
//!
//! Suites that the machine has not configured are reached through a private configuration in a temporary
//! folder, derived from the machine's own: nothing of the system's configuration changes.

use super::Need;
use super::plan::{Answer, Plan, Question, Wide};
use super::sources::{self, SourcesFile};
use crate::process::{said, stdout_of};
use crate::progress::Work;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A private apt configuration.
struct Private {
    folder: tempfile::TempDir,
}

/// The release's name, from /etc/os-release.
fn codename() -> Result<String, String> {
    let text = fs::read_to_string("/etc/os-release").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    line.map(|name| name.trim_matches('"').to_string())
        .ok_or_else(|| "the distribution has no code name".to_string())
}

/// Every configured sources file.
fn sources_files() -> Vec<PathBuf> {
    let folder = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "sources" || e == "list"));
    files.push(PathBuf::from("/etc/apt/sources.list"));
    files.retain(|file| file.exists());
    files.sort();
    files
}

/// Those that can be read.
fn texts(files: &[PathBuf]) -> Vec<SourcesFile> {
    let text = |file: &PathBuf| {
        let name = file.file_name()?.to_string_lossy().into_owned();
        Some(SourcesFile { name, text: fs::read_to_string(file).ok()? })
    };
    files.iter().filter_map(text).collect()
}

impl Private {
    /// A configuration with the machine's own sources (if `with_own`) and `suites` of the same archive.
    fn new(suites: &[String], with_own: bool) -> Result<Self, String> {
        let codename = codename()?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let private = Self { folder };
        for part in ["parts", "lists/partial"] {
            fs::create_dir_all(private.path(part)).map_err(|error| error.to_string())?;
        }
        let files = sources_files();
        let texts = texts(&files);
        for suite in suites {
            let entry = sources::with_suite(&texts, &codename, suite);
            let entry = entry.ok_or_else(|| {
                format!(
                    "no package source for {codename} is configured from which to derive {suite}"
                )
            })?;
            let name = format!("parts/{suite}.{}", sources::extension(&entry));
            fs::write(private.path(&name), entry).map_err(|error| error.to_string())?;
        }
        if with_own {
            for (index, file) in files.iter().enumerate() {
                let extension = file.extension().unwrap_or_default().to_string_lossy();
                let copy = private.path(&format!("parts/own{index}.{extension}"));
                fs::copy(file, copy).map_err(|error| error.to_string())?;
            }
        }
        Ok(private)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The entry that was derived for `suite`.
    fn entry(&self, suite: &str) -> std::io::Result<String> {
        let path =
            ["sources", "list"].map(|extension| self.path(&format!("parts/{suite}.{extension}")));
        fs::read_to_string(path.iter().find(|path| path.exists()).unwrap_or(&path[0]))
    }

    /// Options that make apt use this configuration and nothing else.
    fn options(&self) -> Vec<String> {
        vec![
            "-oDir::Etc::sourcelist=/dev/null".to_string(),
            format!("-oDir::Etc::sourceparts={}", self.path("parts").display()),
            format!("-oDir::State::lists={}", self.path("lists").display()),
            "-oDir::Cache::pkgcache=".to_string(),
            "-oDir::Cache::srcpkgcache=".to_string(),
        ]
    }
}

/// Runs apt-get and shows that it lasts.
fn apt_get(options: &[String], arguments: &[&str], folder: &Path) -> Result<(), String> {
    let mut command = tool("apt-get", options, arguments);
    command.arg("-qq").current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("apt-get cannot be run: {error}"))?;
    let mut work = Work::new(format!("apt-get {}", arguments.join(" ")));
    let waiter = std::thread::spawn(move || child.wait_with_output());
    while !waiter.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        work.tick(0);
    }
    match waiter.join().expect("the waiting thread does not panic") {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(error.to_string()),
    }
}

/// One of apt's programs, which speaks English and asks nothing.
fn tool(program: &str, options: &[String], arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(options).args(arguments).stdin(Stdio::null());
    command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
    command
}

/// Both streams of one of apt's programs, whether it succeeds or not: its refusals are an answer too.
fn answer_of(program: &str, options: &[String], arguments: &[&str]) -> String {
    match tool(program, options, arguments).output() {
        Ok(output) => {
            let streams = [output.stdout, output.stderr];
            streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n")
        }
        Err(error) => format!("E: {program} cannot be run: {error}"),
    }
}

/// Whether this is root.
pub(super) fn is_root() -> bool {
    // SAFETY: reads a number that the kernel keeps.
    unsafe { libc::geteuid() == 0 }
}

/// What apt says of a need's packages. A simulation takes no rights and changes nothing.
fn ask(need: Need, options: &[String], suite: Option<&str>) -> Answer {
    let packages = super::packages::debian(need);
    let target = suite.map(|suite| ["-t", suite]);
    let target = target.as_ref().map_or(&[][..], |words| &words[..]);
    let simulate = [&["-s", "install", "--no-install-recommends"], target, packages].concat();
    Answer {
        versions: answer_of("apt-cache", options, &["madison", packages[0]]),
        simulation: answer_of("apt-get", options, &simulate),
    }
}

/// With the sources that the machine has configured.
pub(super) fn ask_own(need: Need) -> Answer {
    let answer = ask(need, &[], None);
    if answer.versions.contains('|') {
        return answer;
    }
    // A fresh machine may have no package lists at all. Where they cannot be fetched, apt's answer says so.
    if is_root() {
        update();
        return ask(need, &[], None);
    }
    match Private::new(&[], true) {
        Ok(private) if apt_get(&private.options(), &["update"], Path::new("/")).is_ok() => {
            ask(need, &private.options(), None)
        }
        _ => answer,
    }
}

/// Fetches the machine's package lists. If they cannot be fetched, the next question shows it.
pub(super) fn update() {
    let _ = apt_get(&[], &["update"], Path::new("/"));
}

/// With the release's other suites as well.
pub(super) fn ask_wide(need: Need) -> Result<Wide, String> {
    let (private, suite, configure) = wide()?;
    let answer = ask(need, &private.options(), Some(&suite));
    Ok(Wide { suite, configure, answer })
}

/// A configuration with the release's updates and backports, the latter's name, and the commands that configure them.
fn wide() -> Result<(Private, String, String), String> {
    let codename = codename()?;
    let suite = format!("{codename}-backports");
    let own = texts(&sources_files());
    let mut missing = vec![format!("{codename}-updates"), suite.clone()];
    missing.retain(|suite| !own.iter().any(|file| sources::names(&file.text, suite)));
    let private = Private::new(&missing, true)?;
    apt_get(&private.options(), &["update"], Path::new("/"))?;
    let configure = if missing.contains(&suite) {
        let entry = private.entry(&suite).map_err(|error| error.to_string())?;
        sources::commands(&entry, &suite)
    } else {
        String::new()
    };
    Ok((private, suite, configure))
}

/// Every installed package with its version.
pub(super) fn installed() -> String {
    answer_of("dpkg-query", &[], &["-W", "-f", "${Package} ${Version}\\n"])
}

/// Carries a decision out.
pub(super) fn install(plan: &Plan) -> Result<(), String> {
    let private = match plan.from {
        Question::Own => None,
        Question::Wide => Some(wide()?.0),
    };
    let options = private.as_ref().map(Private::options).unwrap_or_default();
    let arguments = [&plan.arguments()[..], &["-y"]].concat();
    apt_get(&options, &arguments, Path::new("/"))
}

/// Suites of Debian that may have a newer compiler than the release: its own backports first.
pub(super) fn debian_suites() -> Vec<String> {
    let own = codename().map(|name| format!("{name}-backports")).into_iter();
    own.chain(["trixie-backports", "forky", "sid"].map(String::from)).collect()
}

/// Downloads one package whose version starts with `version` from the first of `suites` that has it. Needs
/// no rights beyond writing to `folder`.
pub(super) fn download_package(
    name: &str,
    version: &str,
    suites: &[String],
    folder: &Path,
) -> Result<PathBuf, String> {
    if crate::process::find("apt-get").is_none() {
        return Err("this machine has no apt-get".to_string());
    }
    let mut reasons = Vec::new();
    for suite in suites {
        match download_from(name, version, suite, folder) {
            Ok(file) => return Ok(file),
            Err(reason) => reasons.push(format!("{suite}: {}", first_line(&reason))),
        }
    }
    Err(reasons.join("; "))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or(text)
}

fn download_from(name: &str, version: &str, suite: &str, folder: &Path) -> Result<PathBuf, String> {
    let private = Private::new(&[suite.to_string()], false)?;
    let options = private.options();
    apt_get(&options, &["update"], folder)?;
    // Names the exact version, so that a newer one in the same suite is not taken.
    let mut madison = Command::new("apt-cache");
    let listed = stdout_of(madison.args(&options).args(["madison", name])).unwrap_or_default();
    let found = listed.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let matching = found.filter(|found| found.starts_with(&format!("{version}+"))).max();
    let exact = matching.ok_or_else(|| format!("it has no {name} {version}"))?;
    apt_get(&options, &["download", &format!("{name}={exact}")], folder)?;
    let files = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut packages = files.flatten().map(|entry| entry.path());
    packages
        .find(|file| file.extension().is_some_and(|extension| extension == "deb"))
        .ok_or_else(|| "apt-get downloaded nothing".to_string())
}
