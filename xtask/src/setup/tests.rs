//! Set-up's decisions on recorded machines (`xtask/tests/machines`, made by `cargo xtask doctor --record`): whatever the
//! machine has on which the tests run, a missing or wrong step of the installation shows here.

use super::packages::{Manager, debian};
use super::plan::{Changes, Decision, Facts, Plan, Question, Wide, decide};
use super::qemu::Version;
use super::record::{NEEDS, read};
use super::{Need, grub, packages};
use std::path::{Path, PathBuf};

const MACHINES: [&str; 6] = [
    "debian-12",
    "debian-12-developer",
    "debian-12-qemu-7.2",
    "debian-12-qemu-utils-10",
    "debian-13",
    "debian-13-qemu-10",
];

fn folder(machine: &str) -> PathBuf {
    crate::build::root().expect("cargo runs this").join("xtask/tests/machines").join(machine)
}

fn name(need: Need) -> &'static str {
    let same = if need == Need::Qemu { Need::QemuForPmu } else { need };
    NEEDS.iter().find(|(one, _)| *one == same).expect("packages meet it").1
}

/// A recorded machine; None if `need` was not recorded there.
fn machine(machine: &str, need: Need, root: bool) -> Option<Facts> {
    let folder = folder(machine);
    let own = read(&folder, name(need), Question::Own)?;
    let answer = read(&folder, name(need), Question::Wide)?;
    let release = if machine.starts_with("debian-12") { "bookworm" } else { "trixie" };
    let suite = format!("{release}-backports");
    let configure = "sudo tee /etc/apt/sources.list.d/x && ".to_string();
    let wide = Some(Ok(Wide { suite, configure, answer }));
    Some(Facts { manager: Some(Manager::Apt), root, own: Some(own), wide })
}

fn plan(facts: &Facts, need: Need) -> Plan {
    match decide(need, facts) {
        Decision::Install(plan) => plan,
        other => panic!("{need:?}: {other:?}"),
    }
}

fn refusal(facts: &Facts, need: Need) -> (String, String) {
    match decide(need, facts) {
        Decision::Refuse { why, hint } => (why, hint),
        other => panic!("{need:?}: {other:?}"),
    }
}

/// QEMU's version in the simulation that `plan` rests on.
fn version(facts: &Facts, plan: &Plan) -> Version {
    let answer = match plan.from {
        Question::Own => facts.own.as_ref().unwrap(),
        Question::Wide => &facts.wide.as_ref().unwrap().as_ref().unwrap().answer,
    };
    answer.version("qemu-system-x86").expect("a version")
}

#[test]
fn nothing_is_ever_removed_or_downgraded() {
    let mut plans = 0;
    for (need, _) in NEEDS.into_iter().chain([(Need::Qemu, "")]) {
        for recorded in MACHINES {
            let Some(facts) = machine(recorded, need, true) else { continue };
            let plan = plan(&facts, need);
            assert!(plan.changes.removed.is_empty(), "{recorded}: {plan:?}");
            assert!(plan.changes.downgraded.is_empty(), "{recorded}: {plan:?}");
            assert!(plan.arguments().contains(&"--no-remove"), "{recorded}: {plan:?}");
            plans += 1;
        }
    }
    assert_eq!(plans, 29, "a recording is missing");
}

/// Where qemu-utils 10 was installed, apt's own way to QEMU 7.2 was to remove it.
#[test]
fn the_newest_qemu_of_the_release_is_taken_beside_what_is_installed() {
    for (recorded, expected, upgraded) in [
        ("debian-12", Version(10, 0, 2), 0),
        ("debian-12-developer", Version(10, 0, 2), 0),
        ("debian-12-qemu-utils-10", Version(10, 0, 2), 0),
        ("debian-12-qemu-7.2", Version(10, 0, 2), 4),
        ("debian-13", Version(11, 1, 3), 0),
        ("debian-13-qemu-10", Version(11, 1, 3), 4),
    ] {
        let facts = machine(recorded, Need::QemuForPmu, true).unwrap();
        let plan = plan(&facts, Need::QemuForPmu);
        assert_eq!(version(&facts, &plan), expected, "{recorded}");
        assert_eq!(plan.changes.upgraded.len(), upgraded, "{recorded}: {plan:?}");
        assert!(plan.command().contains("-t "), "{recorded}: {}", plan.command());
    }
    let developer = machine("debian-12-developer", Need::Qemu, true).unwrap();
    let own = Changes::read(&developer.own.unwrap().simulation).unwrap();
    assert_eq!(own.removed, ["qemu-utils"], "the recording shows the conflict");
}

/// What a program is in must be named, or come along; a list that changes takes new recordings.
#[test]
fn after_the_plan_every_package_is_there_that_something_is_started_from() {
    let programs = [
        // The emulator, its multiboot loader and video BIOS, the BIOS, the option ROMs that it looks for.
        (Need::QemuForPmu, &["qemu-system-x86", "qemu-system-data", "seabios", "ipxe-qemu"][..]),
        (Need::Ovmf, &["ovmf"]),
        // grub-mkrescue and its modules for BIOS machines, and the two programs that it calls.
        (Need::Grub, &["grub-common", "grub-pc-bin", "xorriso", "mtools"]),
        // valgrind brings Callgrind; clang and g++ are names of packages that lead to the newest of the release.
        (Need::Valgrind, &["valgrind"]),
        (Need::Compilers, &["clang", "g++", "nasm"]),
        // The browser, and a font for it.
        (Need::Chromium, &["chromium", "chromium-common", "fonts-dejavu-core"]),
    ];
    for (need, required) in programs {
        for recorded in MACHINES {
            let Some(facts) = machine(recorded, need, true) else { continue };
            let text = |file: &str| std::fs::read_to_string(folder(recorded).join(file)).unwrap();
            let asked = text(&format!("{}.packages", name(need)));
            assert_eq!(asked.trim(), debian(need).join(" "), "{recorded} was recorded with others");
            let installed = text("installed.txt");
            let mut there: Vec<&str> =
                installed.lines().filter_map(|line| line.split_whitespace().next()).collect();
            let plan = plan(&facts, need);
            there.extend(plan.changes.installed.iter().map(String::as_str));
            for package in required {
                assert!(
                    there.contains(package),
                    "{recorded}: {package} is missing behind {plan:?}"
                );
            }
        }
    }
}

#[test]
fn ovmf_grub_and_chromium_come_from_the_release_itself() {
    for need in [Need::Ovmf, Need::Grub, Need::Chromium] {
        for recorded in ["debian-12", "debian-12-qemu-utils-10", "debian-13"] {
            let Some(facts) = machine(recorded, need, true) else {
                assert_eq!(need, Need::Chromium, "recorded on the first alone");
                continue;
            };
            let facts = Facts { wide: None, ..facts };
            assert_eq!(plan(&facts, need).from, Question::Own, "{recorded}");
        }
    }
}

#[test]
fn apt_is_asked_for_what_is_not_known_and_for_no_more() {
    let asks = |facts: &Facts, need| decide(need, facts);
    let unknown = Facts { manager: Some(Manager::Apt), root: true, ..Facts::default() };
    assert_eq!(asks(&unknown, Need::Ovmf), Decision::Ask(Question::Own));
    let qemu = Facts { wide: None, ..machine("debian-13", Need::Qemu, true).unwrap() };
    assert_eq!(asks(&qemu, Need::Qemu), Decision::Ask(Question::Wide), "a newer one may be there");
}

#[test]
fn without_backports_an_old_qemu_serves_machines_without_a_pmu_alone() {
    let reason = "Could not resolve the package source".to_string();
    let cut_off = |recorded, need| Facts {
        wide: Some(Err(reason.clone())),
        ..machine(recorded, need, true).unwrap()
    };
    let plain = plan(&cut_off("debian-12", Need::Qemu), Need::Qemu);
    assert_eq!((plain.from, plain.suite), (Question::Own, None));
    let (why, hint) = refusal(&cut_off("debian-12", Need::QemuForPmu), Need::QemuForPmu);
    for part in ["7.2.0", "10.0 or newer", &reason] {
        assert!(why.contains(part), "{why}");
    }
    assert!(hint.contains("BARECOUNT_QEMU") && hint.contains("--pmu none"), "{hint}");
    // Trixie's own is good.
    assert_eq!(plan(&cut_off("debian-13", Need::QemuForPmu), Need::QemuForPmu).from, Question::Own);
    // Not even for those is something else removed.
    let (why, _) = refusal(&cut_off("debian-12-developer", Need::Qemu), Need::Qemu);
    assert!(why.contains("apt would remove qemu-utils") && why.contains(&reason), "{why}");
}

#[test]
fn who_is_not_root_is_told_what_is_right_on_that_machine() {
    let facts = machine("debian-12-developer", Need::QemuForPmu, false).unwrap();
    let (why, hint) = refusal(&facts, Need::QemuForPmu);
    assert!(why.contains("root"), "{why}");
    assert_eq!(
        hint,
        "Type: sudo tee /etc/apt/sources.list.d/x && sudo apt-get update && sudo apt-get install --no-remove \
         --no-install-recommends -t bookworm-backports qemu-system-x86 seabios ipxe-qemu"
    );
    let facts = machine("debian-12", Need::Ovmf, false).unwrap();
    let (_, hint) = refusal(&facts, Need::Ovmf);
    assert_eq!(
        hint,
        "Type: sudo apt-get update && sudo apt-get install --no-remove --no-install-recommends ovmf"
    );
}

#[test]
fn other_package_managers_are_named_with_their_packages() {
    for (manager, expected) in [
        (Some(Manager::Dnf), ["dnf install qemu-system-x86-core", "dnf install edk2-ovmf"]),
        (Some(Manager::Pacman), ["pacman -S qemu-system-x86", "pacman -S edk2-ovmf"]),
        (Some(Manager::Zypper), ["zypper install qemu-x86", "zypper install qemu-ovmf-x86_64"]),
        (None, ["Install QEMU", "Install OVMF"]),
    ] {
        let facts = Facts { manager, root: true, ..Facts::default() };
        for (need, part) in [Need::Qemu, Need::Ovmf].into_iter().zip(expected) {
            let (_, hint) = refusal(&facts, need);
            assert!(hint.contains(part), "{hint}");
        }
    }
    let (_, hint) = refusal(&Facts::default(), Need::QemuForPmu);
    assert_eq!(hint, packages::by_other_means(Need::QemuForPmu));
}

/// The program's name, the modules' folder, what else is in the search path, and what is said to be missing.
#[test]
fn grub_is_found_under_each_distributions_names() {
    let (lib, share) = ("/usr/lib/grub/i386-pc", "/usr/share/grub2/i386-pc");
    let (old, new, tools) = ("grub-mkrescue", "grub2-mkrescue", &["xorriso", "mformat"][..]);
    for (program, folder, tools, missing) in [
        (old, lib, tools, None),
        (new, lib, tools, None),
        (new, share, tools, None),
        ("grub2-install", share, tools, Some("no grub-mkrescue or grub2-mkrescue in")),
        (new, share, &tools[..1], Some("no mformat in")),
        (new, "/usr/lib/grub/x86_64-efi", tools, Some("no /usr/lib/grub/i386-pc or /usr/share/")),
    ] {
        let path = |name: &str| PathBuf::from("/usr/bin").join(name);
        let has = |name: &str| (name == program || tools.contains(&name)).then(|| path(name));
        match (grub::find_among(has, |one| one == Path::new(folder)), missing) {
            (Ok(found), None) => {
                assert_eq!((found.program, found.modules), (path(program), folder.into()));
            }
            (Err(why), Some(missing)) => assert!(why.starts_with(missing), "{why}"),
            (found, _) => panic!("{program}, {folder}: {found:?}"),
        }
    }
}

#[test]
fn simulations_are_read_in_full() {
    let text = "The following packages will be REMOVED:\n  a\nThe following packages will be DOWNGRADED:\n  b c\n\
                1 upgraded\nRemv a [1]\nInst b [2] (1 Debian:12 [amd64])\nInst d [1] (2 x [all]) []\nInst e (1 x)\n";
    let changes = Changes::read(text).unwrap();
    let lists = [&changes.removed, &changes.downgraded, &changes.upgraded, &changes.installed];
    assert_eq!(lists.map(|list| list.join(" ")), ["a", "b c", "d", "e"]);
    let broken = "The following packages have unmet dependencies:\n qemu-utils : Breaks: x (< 8)\n\
                  E: Error, pkgProblemResolver::Resolve generated breaks";
    let reason = Changes::read(broken).unwrap_err();
    assert!(
        reason.contains("qemu-utils : Breaks: x (< 8)") && reason.contains("Resolve"),
        "{reason}"
    );
}
