//! The line by which the plugin stops QEMU's guest.
//!
//! A plugin's callback cannot stop the processor that it runs on. But QEMU takes commands of its test protocol (`-qtest`) on a
//! line, in the thread of its devices, and one of them sends the processor an NMI. QEMU inherits both ends of a pair of
//! sockets: one is that line, the other is the plugin's.

use command_fds::{CommandFdExt, FdMapping};
use std::io;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// QEMU's end, in QEMU.
pub const QEMUS: i32 = 3;
/// The plugin's end, in QEMU.
pub const PLUGINS: i32 = 4;

/// Has `command` inherit the line.
///
/// # Errors
/// The system has no sockets to give.
pub fn give(command: &mut Command) -> io::Result<()> {
    let (qemus, plugins) = UnixStream::pair()?;
    let mapping = |end: UnixStream, child_fd| FdMapping { parent_fd: end.into(), child_fd };
    command
        .fd_mappings(vec![mapping(qemus, QEMUS), mapping(plugins, PLUGINS)])
        .expect("two numbers");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_at_one_end_comes_out_at_the_other() {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo line >&{PLUGINS}; read -r said <&{QEMUS}; echo $said")]);
        give(&mut command).unwrap();
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "line\n");
    }
}
