//! `collect`: a report from a serial line or a saved log.

use super::{check_output, deliver, run::resolve};
use crate::build::Tree;
use crate::cli::Collect;
use crate::collect::Collector;
use crate::machine::{MachineError, seconds};
use crate::progress::Work;
use crate::render::Context;
use crate::setup::Toolchain;
use crate::{Failure, Result, verdict};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs the command.
///
/// # Errors
/// Why there is no report.
pub fn run(arguments: &Collect) -> Result<u8> {
    check_output(&arguments.output)?;
    let (collector, complaint) = read(arguments)?;
    let signed = collector.signed();
    let mut report = collector.finish();
    verdict::add_up(&mut report);
    let mut context =
        Context { source: arguments.serial.display().to_string(), complaint, ..Context::default() };
    if signed {
        context.authentication = Some("not verified: the boot's key is not kept");
        context.notes.push(
            "checksums, numbers and the end of the report were verified; its authentication codes were not, since the \
             key of that boot is not kept"
                .to_string(),
        );
    }
    if report.crash().is_some() || report.sampled().next().is_some() {
        // Symbols help only if the stick was made from this very build; a missing kernel is no error.
        if let Ok(tree) = Toolchain::find().and_then(Tree::new) {
            let kernel = tree.kernel_with_symbols();
            resolve(&report, &mut context, &kernel);
            context.kernel = Some(kernel);
        }
    }
    deliver(&report, &context, &arguments.output)
}

fn read(arguments: &Collect) -> Result<(Collector, Option<String>)> {
    let path = &arguments.serial;
    if path.as_os_str() == "-" {
        return stream(std::io::stdin().lock(), path).map(|collector| (collector, None));
    }
    let data = fs::metadata(path).map_err(Failure::file("read", path))?;
    if data.file_type().is_char_device() {
        return device(arguments);
    }
    let file = File::open(path).map_err(Failure::file("read", path))?;
    stream(file, path).map(|collector| (collector, None))
}

/// Everything until the end of the stream, or of the report.
fn stream(mut stream: impl Read, path: &Path) -> Result<Collector> {
    let mut collector = Collector::new();
    let mut buffer = [0; 1 << 16];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(collector),
            Ok(count) => collector.feed(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::file("read", path)(error)),
        }
    }
}

/// A serial device, until the end record or the timeout.
fn device(arguments: &Collect) -> Result<(Collector, Option<String>)> {
    let device = arguments.serial.display().to_string();
    let failed = |error| MachineError::NoDevice { device: device.clone(), error };
    let wait = Duration::from_millis(200);
    let builder = serialport::new(&*device, arguments.baud).timeout(wait);
    let mut port = builder.open_native().map_err(failed)?;
    let mut collector = Collector::new();
    let (start, timeout) = (Instant::now(), arguments.timeout.duration());
    let mut work = Work::new(format!("waiting for {device}"));
    let mut buffer = [0; 4096];
    while !collector.ended() {
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
