//! Programs from the distribution's packages.

use super::plan::{Decision, Facts, Plan, Question, decide};
use super::{Need, Status, apt, qemu};
use crate::process::find;

/// A program that installs packages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Manager {
    /// Debian's and its descendants'.
    Apt,
    /// Fedora's.
    Dnf,
    /// Arch Linux's.
    Pacman,
    /// openSUSE's.
    Zypper,
}

impl Manager {
    const ALL: [Self; 4] = [Self::Apt, Self::Dnf, Self::Pacman, Self::Zypper];

    fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Dnf => "dnf",
            Self::Pacman => "pacman",
            Self::Zypper => "zypper",
        }
    }

    fn of_this_machine() -> Option<Self> {
        Self::ALL.into_iter().find(|manager| find(manager.program()).is_some())
    }

    fn command(self) -> &'static str {
        match self {
            Self::Apt => "sudo apt-get install --no-remove --no-install-recommends",
            Self::Dnf => "sudo dnf install",
            Self::Pacman => "sudo pacman -S",
            Self::Zypper => "sudo zypper install",
        }
    }

    /// The packages that `need` takes.
    fn packages(self, need: Need) -> String {
        let [qemu, ovmf, grub] = match self {
            Self::Apt => return debian(need).join(" "),
            Self::Dnf => [
                "qemu-system-x86-core",
                "edk2-ovmf",
                "grub2-tools-extra grub2-pc-modules xorriso mtools",
            ],
            Self::Pacman => ["qemu-system-x86", "edk2-ovmf", "grub libisoburn mtools"],
            Self::Zypper => ["qemu-x86", "qemu-ovmf-x86_64", "grub2 grub2-i386-pc xorriso mtools"],
        };
        let names = match need {
            Need::Ovmf => ovmf,
            Need::Grub => grub,
            Need::Fsck => "dosfstools",
            Need::Valgrind => "valgrind",
            Need::Compilers if self == Self::Pacman => "clang gcc nasm",
            Need::Compilers => "clang gcc-c++ nasm",
            Need::Chromium => "chromium",
            Need::Python if self == Self::Pacman => "python",
            Need::Python => "python3",
            _ => qemu,
        };
        names.to_string()
    }
}

/// What tests compile with, in addition to the C compiler that Rust takes.
pub(super) const COMPILERS: [&str; 4] = ["clang", "clang++", "g++", "nasm"];

/// Whether all of these are in the search path.
pub(super) fn programs_status(programs: &[&str]) -> Status {
    match programs.iter().find(|program| find(program).is_none()) {
        Some(missing) => Status::Missing { why: format!("no {missing} in the search path") },
        None => Status::Present(programs.join(", ")),
    }
}

/// Where it is: the folder of the superuser's programs need not be in a user's search path.
const FSCK: [&str; 3] = ["fsck.fat", "/usr/sbin/fsck.fat", "/sbin/fsck.fat"];

pub(super) fn fsck_status() -> Status {
    let found = FSCK.into_iter().find_map(|place| match place.starts_with('/') {
        true => Some(std::path::PathBuf::from(place)).filter(|path| path.exists()),
        false => find(place),
    });
    match found {
        Some(path) => Status::Present(path.display().to_string()),
        None => Status::Missing { why: "no fsck.fat in the search path".to_string() },
    }
}

/// Debian's packages.
pub(super) fn debian(need: Need) -> &'static [&'static str] {
    match need {
        // The last two are named because they are only recommended, and needed.
        Need::Qemu | Need::QemuForPmu => &["qemu-system-x86", "seabios", "ipxe-qemu"],
        Need::Ovmf => &["ovmf"],
        Need::Grub => &["grub-common", "grub-pc-bin", "xorriso", "mtools"],
        Need::Fsck => &["dosfstools"],
        Need::Valgrind => &["valgrind"],
        Need::Compilers => &["clang", "g++", "nasm"],
        // A browser without fonts draws boxes.
        Need::Chromium => &["chromium", "fonts-dejavu-core"],
        // The latter has what `venv` takes.
        Need::Python => &["python3", "python3-venv"],
        Need::Assembler
        | Need::Compiler
        | Need::RustSource
        | Need::LlvmTools
        | Need::Axe
        | Need::Mutants
        | Need::Labgrid
        | Need::Parsers => &[],
    }
}

/// What to type where `manager` installs packages and is not apt.
pub(super) fn hint(need: Need, manager: Option<Manager>) -> String {
    match manager {
        Some(manager) => format!("Type: {} {}", manager.command(), manager.packages(need)),
        None => by_other_means(need),
    }
}

/// What to do where no package source has it.
pub(super) fn by_other_means(need: Need) -> String {
    match need {
        Need::QemuForPmu => format!(
            "Build or unpack QEMU {}, and name its program by {}; or measure without a PMU: --pmu none",
            qemu::good(),
            qemu::VARIABLE
        ),
        _ => format!("Install {} with your system's package manager", need.name()),
    }
}

/// Asks apt as far as a decision takes it.
fn resolve(need: Need) -> Decision {
    let (manager, root) = (Manager::of_this_machine(), apt::is_root());
    let mut facts = Facts { manager, root, ..Facts::default() };
    loop {
        match decide(need, &facts) {
            Decision::Ask(Question::Own) => facts.own = Some(apt::ask_own(need)),
            Decision::Ask(Question::Wide) => facts.wide = Some(apt::ask_wide(need)),
            decision => return decision,
        }
    }
}

/// Installs what `need` takes, which is missing for `reason`; or says why not and what to type.
pub(super) fn install(need: Need, reason: &str) -> Result<(), (String, String)> {
    if is_named(need) {
        return Err((String::new(), named_hint()));
    }
    let mut decision = resolve(need);
    for attempt in 0..2 {
        let plan = match decision {
            Decision::Install(plan) => plan,
            Decision::Refuse { why, hint } => return Err((why, hint)),
            Decision::Ask(_) => unreachable!("settled"),
        };
        tell(need, reason, &plan);
        let done = apt::install(&plan);
        qemu::forget();
        match done {
            Ok(()) => return Ok(()),
            // Package lists of long ago name files that the source no longer has.
            Err(_) if attempt == 0 && plan.from == Question::Own => apt::update(),
            Err(why) => return Err((why, format!("Type: sudo {}", plan.command()))),
        }
        decision = resolve(need);
    }
    Err((String::new(), by_other_means(need)))
}

fn tell(need: Need, reason: &str, plan: &Plan) {
    let mut text = format!("installing {} ({reason}): {}", need.name(), plan.command());
    if !plan.changes.upgraded.is_empty() {
        text += &format!(" (upgrades {})", plan.changes.upgraded.join(", "));
    }
    crate::output::say(&text);
}

/// What to type on this machine. Asks apt, which may take some seconds.
pub(super) fn advice(need: Need) -> String {
    if is_named(need) {
        return named_hint();
    }
    match resolve(need) {
        Decision::Install(plan) => format!("`run` and `test` install it: {}", plan.command()),
        Decision::Refuse { hint, .. } => hint,
        Decision::Ask(_) => unreachable!("settled"),
    }
}

/// Whether the user named the program, whom no package could please.
fn is_named(need: Need) -> bool {
    matches!(need, Need::Qemu | Need::QemuForPmu) && qemu::named().is_some()
}

fn named_hint() -> String {
    format!(
        "The program is the one that --qemu or {} names: name a QEMU {}",
        qemu::VARIABLE,
        qemu::good()
    )
}
