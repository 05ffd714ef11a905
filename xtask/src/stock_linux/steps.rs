//! What the guest does: commands for its shell, one after the other, each with a name by which its output is found.

use std::fmt::Write;

/// A command, and what the host calls it.
#[derive(Clone, Debug)]
pub struct Step {
    name: String,
    command: String,
}

/// First words of the lines on the console before and after a command's output.
const BEGIN: &str = "== begin ";
const END: &str = "== end ";

/// Called before the first step. The console is the steps': what the kernel has to say is read from its log. What `/init` leaves
/// in the environment, perf finds. Without names of files in the terminal's colours.
const BEGINNING: &str = "\
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp TERM=dumb
dmesg -n 1
cd /tmp
";
/// After the last. Linux does not empty the serial port's buffer when it switches the machine off. busybox' stty sets a
/// terminal when it has sent what was written (TCSADRAIN).
const ENDING: &str = "stty -echo\npoweroff -f\n";

impl Step {
    /// A step. `name` is one word.
    #[must_use]
    pub fn new(name: &str, command: &str) -> Self {
        Self { name: name.to_string(), command: command.to_string() }
    }
}

/// The script that is the guest's first process.
#[must_use]
pub fn script(steps: &[Step]) -> String {
    let mut script = BEGINNING.to_string();
    for Step { name, command } in steps {
        // In a shell of its own, whose end is not the script's. A String takes every text.
        let _ =
            writeln!(script, "echo '{BEGIN}{name}'\n( {command} ) 2>&1\necho \"{END}{name} $?\"");
    }
    script + ENDING
}

/// What the guest's steps printed.
#[derive(Clone, Debug)]
pub struct Console(pub String);

impl Console {
    /// The output of the step `name`, whose command succeeded.
    ///
    /// # Panics
    /// If it did not, or there was no such step: with the whole console.
    #[must_use]
    #[track_caller]
    pub fn output(&self, name: &str) -> String {
        match self.find(name) {
            Ok(output) => output,
            Err(error) => panic!("{error}\n{}", self.0),
        }
    }

    fn find(&self, name: &str) -> Result<String, String> {
        let mut lines = self.0.lines().map(|line| line.trim_end_matches('\r'));
        if !lines.any(|line| line.strip_prefix(BEGIN) == Some(name)) {
            return Err(format!("the guest did not reach {name}"));
        }
        let mut output = String::new();
        for line in lines {
            let ended = line.strip_prefix(END).and_then(|rest| rest.strip_prefix(name));
            match ended.and_then(|rest| rest.strip_prefix(' ')) {
                Some("0") => return Ok(output),
                Some(status) => return Err(format!("{name} ended with {status}: {output}")),
                None => output = output + line + "\n",
            }
        }
        Err(format!("{name} did not end: {output}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What a shell of this machine prints for the steps; what mounts and ends is left out.
    fn run(steps: &[Step]) -> Console {
        let script = script(steps);
        let steps = script.strip_prefix(BEGINNING).and_then(|rest| rest.strip_suffix(ENDING));
        let output = Command::new("sh").args(["-c", steps.unwrap()]).output().unwrap();
        Console(String::from_utf8(output.stdout).unwrap().replace('\n', "\r\n"))
    }

    #[test]
    fn each_steps_output_is_found_and_a_failed_one_is_told() {
        let console = run(&[
            Step::new("first", "echo one; echo two >&2"),
            Step::new("none", "true"),
            Step::new("failed", "echo why; exit 3"),
            Step::new("first-again", "echo three"),
        ]);
        assert_eq!(console.output("first"), "one\ntwo\n");
        assert_eq!(console.output("none"), "");
        assert_eq!(console.output("first-again"), "three\n");
        assert_eq!(console.find("failed").unwrap_err(), "failed ended with 3: why\n");
        assert_eq!(console.find("other").unwrap_err(), "the guest did not reach other");
    }

    #[test]
    fn a_step_that_was_cut_off_is_told() {
        let whole = run(&[Step::new("first", "echo one")]).0;
        let cut = Console(whole[..whole.find(END).unwrap()].to_string());
        assert_eq!(cut.find("first").unwrap_err(), "first did not end: one\n");
    }
}
