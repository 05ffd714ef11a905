//! Jobs of what programs register: of `--crate`, and of `--object` without `--function`.

use super::errors::JobError;
use super::file::{JobFile, SnippetFile};
use super::function::{Argument, FunctionFile};
use super::overrides::Overrides;
use crate::benchmarks::package::Package;
use crate::benchmarks::{Benchmark, build, entries};
use crate::events::EventText;
use crate::program::{self, Wanted};
use std::path::{Path, PathBuf};

/// What is counted of each benchmark if nothing else is asked for.
const EVENT: &str = "instructions";

/// A benchmark and the linked program that has it.
type Found = (Benchmark, PathBuf);

impl Overrides {
    /// The job of registered benchmarks, if those are asked for.
    ///
    /// # Errors
    /// There are none, or they do not build.
    pub(super) fn registered(&self) -> Result<Option<JobFile>, JobError> {
        let (found, name) = match &self.package {
            Some(package) => (of_package(package)?, format!("crate {}", name_of(package))),
            None if !self.object.is_empty() && self.function.is_empty() => {
                for (given, name) in [
                    (!self.arguments.is_empty(), "--arg"),
                    (self.setup.is_some(), "--setup"),
                    (self.teardown.is_some(), "--teardown"),
                ] {
                    if given {
                        return Err(JobError::Function(format!("{name} needs --function")));
                    }
                }
                (of_objects(&self.object)?, "registered benchmarks".to_string())
            }
            None if self.bench.is_some() => {
                let text =
                    "--bench chooses benchmarks of --crate or --object; give one of them too";
                return Err(JobError::Function(text.to_string()));
            }
            None => return Ok(None),
        };
        let found = entries::filter(found, self.bench.as_deref(), |one| &one.0.name)?;
        let source = if self.package.is_some() { "--crate" } else { "--object" };
        let base = self.one_liner("").snippets.remove(0);
        let snippets = found.into_iter().map(|one| snippet(one, &base, self.events.is_empty()));
        Ok(Some(JobFile { snippets: snippets.collect(), ..Self::job(source, &name, base.clone()) }))
    }
}

/// The item of a benchmark.
fn snippet((benchmark, file): Found, base: &SnippetFile, count: bool) -> SnippetFile {
    let mut snippet = base.clone();
    snippet.name = benchmark.name;
    snippet.options.call_once();
    if count {
        // A machine that does not count still tells ticks.
        snippet.options.events = EVENT.parse::<EventText>().into_iter().collect();
        snippet.criteria.allow_uncounted = Some(true);
    }
    let [setup, teardown] = benchmark.around;
    snippet.function = Some(FunctionFile {
        files: vec![file],
        name: benchmark.function,
        arguments: vec![Argument::Number(benchmark.parameter.cast_signed())],
        setup,
        teardown,
    });
    snippet
}

/// The benchmarks of a package, built.
fn of_package(path: &Path) -> Result<Vec<Found>, JobError> {
    let package = Package::find(path)?;
    let mut all = Vec::new();
    for target in &package.targets {
        let file = build::build(&package, target)?;
        all.extend(read(&file, &format!("--crate {}: {target}", path.display()))?);
    }
    Ok(all)
}

/// The benchmarks of objects, linked.
fn of_objects(files: &[PathBuf]) -> Result<Vec<Found>, JobError> {
    let sections = vec!["barecount".to_string()];
    let wanted = Wanted { files: files.to_vec(), functions: Vec::new(), sections };
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let name = format!("--object {}", names.join(", "));
    let linked =
        program::link(&wanted).map_err(|error| JobError::Function(format!("{name}: {error}")))?;
    read(&linked.path, &name)
}

fn read(file: &Path, name: &str) -> Result<Vec<Found>, JobError> {
    let bytes =
        std::fs::read(file).map_err(|error| JobError::Read { path: file.to_path_buf(), error })?;
    let all = entries::read(&bytes, name)?;
    Ok(all.into_iter().map(|benchmark| (benchmark, file.to_path_buf())).collect())
}

/// The name of a package's folder.
fn name_of(package: &Path) -> String {
    let whole = std::path::absolute(package).unwrap_or_else(|_| package.to_path_buf());
    let name =
        whole.components().next_back().map(|last| last.as_os_str().to_string_lossy().into_owned());
    name.unwrap_or_default()
}
