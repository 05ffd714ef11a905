//! What the assembler may take: a directive of ten characters can ask it for more memory than there is, or for ever.

use crate::interrupt;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Bounds of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Processor time in seconds.
    cpu_s: u64,
    /// Address space in bytes.
    memory: u64,
    /// The longest file that it writes, in bytes.
    file: u64,
    /// Bytes of messages.
    said: usize,
    /// Time in all: longer than the processor time, as machines are shared, and for what takes none.
    wall: Duration,
}

const MIB: u64 = 1 << 20;

impl Bounds {
    /// What `bytes` of text can need, several times over. Measured with rustc 1.95 on a shared virtual machine, in processor
    /// time and resident memory: a text of nothing 0.01 s and 67 MB, 8 MiB of `nop` in lines of their own 0.6 s and
    /// 145 MB, `.rept 1000000` of `nop` 0.2 s and 77 MB, of jumps 1.7 s and 432 MB. Code of more than 1 MiB is refused.
    pub(super) fn of(bytes: usize) -> Self {
        let bytes = bytes as u64;
        Self {
            cpu_s: 5 + bytes / MIB,
            memory: 1024 * MIB + 64 * bytes,
            file: 64 * MIB + 16 * bytes,
            said: 4 << 20,
            wall: Duration::from_secs(60 + 10 * bytes / MIB),
        }
    }

    /// For one text that may be the one that takes too much.
    pub(super) fn of_suspect(bytes: usize) -> Self {
        let whole = Self::of(bytes);
        Self { cpu_s: whole.cpu_s - 3, said: 1 << 20, wall: whole.wall / 2, ..whole }
    }

    /// Runs `command` within the bounds and reads its standard error.
    pub(super) fn run(&self, command: &mut Command) -> io::Result<Output> {
        let limits = [
            // One second more, so that the signal tells this limit from another end.
            (libc::RLIMIT_CPU, self.cpu_s, self.cpu_s + 1),
            (libc::RLIMIT_AS, self.memory, self.memory),
            (libc::RLIMIT_FSIZE, self.file, self.file),
            (libc::RLIMIT_CORE, 0, 0),
        ];
        // SAFETY: between fork and exec only async-signal-safe calls are allowed; setrlimit is a plain system call, and
        // the closure allocates nothing.
        unsafe {
            command.pre_exec(move || {
                for (resource, soft, hard) in limits {
                    lower(resource, soft, hard);
                }
                Ok(())
            });
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = command.spawn()?;
        let errors = child.stderr.take().expect("piped");
        let (sender, receiver) = channel();
        let most = self.said;
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What it managed to say is what there is. One byte more tells that there was more.
            let _ = errors.take(most as u64 + 1).read_to_end(&mut text);
            // Nobody waits for it if the call was ended.
            let _ = sender.send(text);
        });
        let mut said = None;
        let status = loop {
            // A program that says too much waits in its pipe, one that is done closes it.
            if said.is_none() {
                said = receiver.recv_timeout(Duration::from_millis(20)).ok();
            } else {
                std::thread::sleep(Duration::from_millis(2));
            }
            let verbose = said.as_ref().is_some_and(|text: &Vec<u8>| text.len() > most);
            let late = start.elapsed() > self.wall;
            if let (Some(_), false, Some(status)) = (&said, verbose, child.try_wait()?) {
                break status;
            }
            if verbose || late || interrupt::pending().is_some() {
                // It may have ended in this moment; then there is nothing to do.
                let _ = child.kill();
                let status = child.wait()?;
                let what = match verbose {
                    true => format!("{most} bytes of messages"),
                    false => format!("{} s", self.wall.as_secs()),
                };
                return Ok(Output { status, said: said.unwrap_or_default(), exceeded: Some(what) });
            }
        };
        let said = said.unwrap_or_default();
        Ok(Output { status, exceeded: self.exceeded(status, &said), said })
    }

    /// Which bound ended it, if one did.
    fn exceeded(&self, status: ExitStatus, said: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(said);
        let memory = || format!("{} MiB of memory", self.memory / MIB);
        match status.signal() {
            Some(libc::SIGXCPU | libc::SIGKILL) => {
                Some(format!("{} s of processor time", self.cpu_s))
            }
            Some(libc::SIGXFSZ) => Some(format!("{} MiB of code", self.file / MIB)),
            // LLVM and Rust abort when an allocation fails.
            Some(_) => Some(memory()),
            None if status.success() => None,
            None if text.contains("out of memory") || text.contains("memory allocation of") => {
                Some(memory())
            }
            None => None,
        }
    }
}

/// Lowers a limit of this process; one that is lower already stays.
fn lower(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or write the structure that they are given and nothing else.
    unsafe {
        if libc::getrlimit(resource, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_cur.min(soft);
            limit.rlim_max = limit.rlim_max.min(hard);
            libc::setrlimit(resource, &raw const limit);
        }
    }
}

/// What a call came to.
pub(super) struct Output {
    pub(super) status: ExitStatus,
    /// Standard error.
    pub(super) said: Vec<u8>,
    /// The bound that ended it.
    pub(super) exceeded: Option<String>,
}
