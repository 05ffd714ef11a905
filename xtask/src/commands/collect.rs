//! `collect`: a report from a serial line, a saved log or a stick.

mod stick;

use super::run::{needs_symbols, resolve};
use super::{check_output, deliver};
use crate::cli::{Collect, Format, Output};
use crate::collect::Collector;
use crate::context::Context;
use crate::kinds::places;
use crate::machine::{MachineError, seconds};
use crate::progress::Work;
use crate::{Failure, Result, build, interrupt, output, qr, tool, verdict};
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Seek};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Runs the command.
///
/// # Errors
/// Why there is no report.
pub fn run(arguments: &Collect) -> Result<u8> {
    if !arguments.qr.is_empty() {
        return digest(arguments);
    }
    let from = [&arguments.serial, &arguments.image].into_iter().flatten();
    let inputs: Vec<&Path> = from.map(PathBuf::as_path).collect();
    check_output(&arguments.output, &inputs)?;
    let deferred = interrupt::defer();
    let (collector, mut complaint, source) = match (&arguments.serial, &arguments.image) {
        (_, Some(image)) => {
            let (collector, source) = stick::read(image, arguments)?;
            (collector, None, source)
        }
        (Some(serial), None) => {
            let (collector, complaint) = read(serial, arguments)?;
            (collector, complaint, serial.display().to_string())
        }
        (None, None) => unreachable!("one of them is required"),
    };
    let interrupted = interrupt::take();
    drop(deferred);
    if let Some(signal) = interrupted {
        complaint = Some(format!("interrupted by {signal}; what arrived before is above"));
    }
    let signed = collector.signed();
    let mut report = collector.finish();
    let unnamed = places::name(&mut report);
    verdict::add_up(&mut report);
    let width = arguments.output.width();
    let mut context = Context { source, complaint, interrupted, width, ..Context::default() };
    context.notes.extend(unnamed);
    if signed {
        context.authentication = Some("not verified: the boot's key is not saved");
        context.notes.push(
            "checksums, numbers and the end of the report were verified; its authentication codes were not, since the \
             key of that boot is not kept"
                .to_string(),
        );
    }
    if needs_symbols(&report) {
        // Symbols help only if the stick was made from this very build; a missing kernel is not an error.
        if let Some(kernel) = build::symbols() {
            resolve(&report, &mut context, &kernel);
            context.kernel = Some(kernel);
        }
    }
    deliver(&report, &context, &arguments.output)
}

/// The digest that the QR codes hold.
fn digest(arguments: &Collect) -> Result<u8> {
    let Output { format, out, samples_folded, samples_pprof, plots } = &arguments.output;
    if samples_folded.is_some() || samples_pprof.is_some() || plots.is_some() {
        let text = "a digest has neither samples nor histories: use the whole report for those";
        return Err(Failure::Usage(text.to_string()));
    }
    let inputs: Vec<&Path> = arguments.qr.iter().map(PathBuf::as_path).collect();
    check_output(&arguments.output, &inputs)?;
    let digest = qr::read(&arguments.qr)?;
    let text = match format {
        Format::Table => qr::table(&digest, arguments.output.width()),
        Format::Json => qr::json(&digest),
        _ => {
            let text =
                "a digest can be shown as table or json: use the whole report for other formats";
            return Err(Failure::Usage(text.to_string()));
        }
    };
    match out {
        Some(path) => output::write(path, anstream::adapter::strip_str(&text).to_string())?,
        None => output::print(&text)?,
    }
    Ok(digest.outcome.exit_code())
}

fn read(path: &Path, arguments: &Collect) -> Result<(Collector, Option<String>)> {
    if path.as_os_str() == "-" {
        return stream(std::io::stdin(), path).map(|collector| (collector, None));
    }
    let data = fs::metadata(path).map_err(Failure::file("read", path))?;
    if data.file_type().is_char_device() {
        return device(path, arguments);
    }
    let mut file = File::open(path).map_err(Failure::file("read", path))?;
    if data.is_file() && is_document(&mut file) {
        let text = format!(
            "{} is no log: it is a report of --format json, of which `{} report` makes a page",
            path.display(),
            tool::called()
        );
        return Err(Failure::Usage(text));
    }
    stream(file, path).map(|collector| (collector, None))
}

/// Whether a file is what `--format json` writes. It is read from its begin again.
fn is_document(file: &mut File) -> bool {
    let reads = |file: &mut File| {
        let mut first = [0];
        file.read_exact(&mut first)?;
        file.rewind()?;
        // A log may begin with anything, but is no document from end to end.
        let is = first == *b"{"
            && serde_json::from_reader::<_, serde_json::Value>(BufReader::new(&mut *file))
                .is_ok_and(|document| document.get("records").is_some());
        file.rewind()?;
        Ok::<bool, std::io::Error>(is)
    };
    reads(file).unwrap_or(false)
}

/// How often a signal is looked for.
const WAIT: Duration = Duration::from_millis(200);

/// Everything until the end of the stream, or a signal. A thread reads, as a read from a pipe waits as long as it likes.
fn stream(mut stream: impl Read + Send + 'static, path: &Path) -> Result<Collector> {
    let (sender, receiver) = sync_channel(16);
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        loop {
            let piece = match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(buffer[..count].to_vec()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let over = piece.is_err();
            if sender.send(piece).is_err() || over {
                return;
            }
        }
    });
    let mut collector = Collector::new();
    while interrupt::pending().is_none() {
        match receiver.recv_timeout(WAIT) {
            Ok(Ok(bytes)) => collector.feed(&bytes),
            Ok(Err(error)) => return Err(Failure::file("read", path)(error)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(collector)
}

/// A serial device, until the end record or the timeout.
fn device(path: &Path, arguments: &Collect) -> Result<(Collector, Option<String>)> {
    let device = path.display().to_string();
    let failed = |error| MachineError::NoDevice { device: device.clone(), error };
    let builder = serialport::new(&*device, arguments.baud).timeout(WAIT);
    let mut port = builder.open_native().map_err(failed)?;
    let mut collector = Collector::new();
    let (start, timeout) = (Instant::now(), arguments.timeout.duration());
    let mut work = Work::new(format!("waiting for {device}"));
    let mut buffer = [0; 4096];
    while !collector.ended() && interrupt::pending().is_none() {
        match port.read(&mut buffer) {
            Ok(count) => collector.feed(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(error) => {
                let text = format!("the device {device} failed: {error}");
                return Ok((collector, Some(text)));
            }
        }
        work.tick(collector.items());
        if start.elapsed() > timeout {
            let text = format!("no end record within {}", seconds(timeout));
            return Ok((collector, Some(text)));
        }
    }
    Ok((collector, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_not_taken_for_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let of = |text: &str| {
            let path = folder.path().join("file");
            fs::write(&path, text).unwrap();
            let mut file = File::open(&path).unwrap();
            let is = is_document(&mut file);
            let mut whole = String::new();
            file.read_to_string(&mut whole).unwrap();
            assert_eq!(whole, text, "it is read from its begin again");
            is
        };
        assert!(of(r#"{"report":1,"records":[]}"#));
        for log in ["", "{", "SeaBIOS\n", r#"{"type":"job"}"#, "{\"records\":[]}\nmore"] {
            assert!(!of(log), "{log}");
        }
    }
}
