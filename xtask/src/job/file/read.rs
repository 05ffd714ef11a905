//! From the text of a job file to a job.

use super::forms::{characterise, check_code};
use super::lines::Text;
use super::sections::{JobFile, Purpose, RawJob};
use super::snippet::decide;
use super::{MAX_CPUS, OnProcessors, SnippetFile};
use crate::job::about::digest;
use crate::job::checks;
use crate::job::errors::JobError;
use protocol::PROTOCOL_VERSION;
use protocol::job::limits;
use std::path::Path;
use toml::Spanned;

/// Reads a job file.
///
/// # Errors
/// The file, or its content.
pub fn read(path: &Path) -> Result<JobFile, JobError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| JobError::Read { path: path.to_path_buf(), error })?;
    parse(&text, &path.display().to_string())
}

/// What is wrong with the text, with a hint where a section has too few brackets.
fn explained(error: &toml::de::Error, text: &str) -> String {
    let said = error.to_string();
    let section = error.span().and_then(|span| text.get(span.start..)?.strip_prefix('['));
    let name = section.and_then(|rest| rest.split([']', '.', '\n']).next());
    match name.filter(|_| error.message().contains("map, expected a sequence")) {
        Some(name) => format!("{said}there may be several of them: write [[{name}]]"),
        None => said,
    }
}

/// Reads a job from its text; `source` is its name in messages.
///
/// # Errors
/// The first thing that is wrong, with line and column.
pub fn parse(text: &str, source: &str) -> Result<JobFile, JobError> {
    let wrong = |message: String| JobError::Toml { file: source.to_string(), message };
    let mut raw: RawJob = toml::from_str(text).map_err(|error| wrong(explained(&error, text)))?;
    check_version(&raw, source)?;
    // Before anything is done for each item.
    limits::check_items(raw.items() as u64)
        .map_err(|error| JobError::Limit { file: source.to_string(), error })?;
    let places = Text::new(text);
    let baud = raw.baud.as_ref().map_or(limits::MAX_BAUD, |baud| *baud.get_ref());
    if let (Err(error), Some(spanned)) = (limits::check_baud(baud), &raw.baud) {
        let (line, column) = places.position(spanned.span().start);
        return Err(wrong(format!("line {line}, column {column}: {error}")));
    }
    let cpus = raw.cpus.as_ref().map(|cpus| *cpus.get_ref());
    if let (Some(wrong_number), Some(spanned)) =
        (cpus.filter(|cpus| !(1..=MAX_CPUS).contains(cpus)), &raw.cpus)
    {
        let (line, column) = places.position(spanned.span().start);
        let reason = format!("cpus is {wrong_number}; it must be 1 to {MAX_CPUS}");
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let (Purpose::Snippets | Purpose::Honest, Some(checks)) = (raw.kind, &raw.checks) {
        let (line, column) = places.position(checks.span().start);
        let reason = "checks needs kind = \"conformance\"";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let Some(checks) = &raw.checks
        && let Some(reason) = checks.get_ref().iter().find_map(|one| checks::unknown(one))
    {
        let (line, column) = places.position(checks.span().start);
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    let checks = raw.checks.take().map(Spanned::into_inner).unwrap_or_default();
    let stem = Path::new(source).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    if let Some(cpu) = raw.snippet.iter().find_map(|one| one.get_ref().cpu.as_ref()) {
        let (line, column) = places.position(cpu.span().start);
        let reason = "cpu needs [[processors]] in place of [[snippet]]";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let Some(core) = raw.snippet.iter().find_map(|one| one.get_ref().core.as_ref()) {
        let (line, column) = places.position(core.span().start);
        let reason = "core needs [[processors]] in place of [[snippet]]";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let Some(every) = raw.snippet.iter().find_map(|one| one.get_ref().interrupt_every.as_ref()) {
        let (line, column) = places.position(every.span().start);
        let reason = "interrupt-every needs [[processors]] in place of [[snippet]]";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let Some(rounds) = raw.snippet.iter().find_map(|one| one.get_ref().contention.as_ref()) {
        let (line, column) = places.position(rounds.span().start);
        let reason = "contention needs [[processors]] in place of [[snippet]]";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    let place =
        |(line, column), reason: String| wrong(format!("line {line}, column {column}: {reason}"));
    let mut snippets = Vec::new();
    for mut snippet in std::mem::take(&mut raw.snippet) {
        let at = places.position(snippet.span().start);
        let function = snippet.get_mut().function();
        check_code(snippet.get_ref(), function.is_there())
            .map_err(|why| place(at, why.to_string()))?;
        let function = function.decide(source).map_err(|reason| place(at, reason))?;
        snippets.push(decide(snippet, function, &raw.defaults, &places));
    }
    for forms in std::mem::take(&mut raw.characterise) {
        let at = places.position(forms.span().start);
        forms.get_ref().check().map_err(|why| place(at, why.to_string()))?;
        snippets.push(characterise(forms, &raw.defaults, &places));
    }
    for mut one in std::mem::take(&mut raw.processors) {
        let at = places.position(one.span().start);
        let function = one.get_mut().function();
        check_code(one.get_ref(), function.is_there()).map_err(|why| place(at, why.to_string()))?;
        let function = function.decide(source).map_err(|reason| place(at, reason))?;
        let cpu = one.get_ref().cpu.as_ref().map(|cpu| *cpu.get_ref());
        let interrupt_every = one.get_ref().interrupt_every.as_ref().map(|every| *every.get_ref());
        let contention = one.get_ref().contention.as_ref().map(|rounds| *rounds.get_ref());
        let core = one.get_ref().core.as_ref().map(|core| *core.get_ref());
        let processors = Some(OnProcessors { cpu, core, interrupt_every, contention });
        snippets.push(SnippetFile { processors, ..decide(one, function, &raw.defaults, &places) });
    }
    let mut file = JobFile {
        source: source.to_string(),
        name: raw.name.take().or(stem).unwrap_or_default(),
        baud,
        on_end: raw.on_end,
        self_test: raw.self_test,
        allow_uncounted: raw.allow_uncounted,
        cpus,
        checks: matches!(raw.kind, Purpose::Conformance | Purpose::BringUp).then_some(checks),
        brings_up: raw.kind == Purpose::BringUp,
        snippets,
        limits: std::mem::take(&mut raw.limits),
        text: Some(digest(text.as_bytes())),
        ..JobFile::default()
    };
    file.take_sections(&mut raw, &places, source)?;
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    for item in file.items_mut() {
        item.memory_mut().iter_mut().for_each(|memory| memory.based_on(folder));
    }
    if raw.kind == Purpose::Honest {
        file.add_experiments()?;
    }
    Ok(file)
}

fn check_version(raw: &RawJob, source: &str) -> Result<(), JobError> {
    let Some(version) = &raw.version else {
        return Ok(());
    };
    let (found, known) = (*version.get_ref(), PROTOCOL_VERSION);
    if found <= u64::from(known) {
        return Ok(());
    }
    Err(JobError::Newer { file: source.to_string(), found, known })
}
