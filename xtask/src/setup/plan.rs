//! What to install, decided from what the machine and apt say. Nothing here asks or changes anything, so that recorded
//! machines can be decided on as well.
//!
//! One rule for every package: what is installed is never removed and never downgraded. apt resolves a conflict by
//! removal where it sees no other way, so its simulation is read before anything is done. Of QEMU the newest one is
//! taken that the release has, its updates and its backports among them; of everything else the release's own.

use super::Need;
use super::packages::Manager;
use super::qemu::{self, Version};

/// What is known of the machine.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The program that installs packages.
    pub manager: Option<Manager>,
    /// Whether this is root.
    pub root: bool,
    /// What apt says with the sources that the machine has configured.
    pub own: Option<Answer>,
    /// The same with the suites of [`Wide`] as well, or why they cannot be reached.
    pub wide: Option<Result<Wide, String>>,
}

/// What apt said of a need's packages, in the C locale.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// `apt-cache madison` of the first package.
    pub versions: String,
    /// `apt-get -s install` of all of them, both of its streams.
    pub simulation: String,
}

/// What apt said with suites of the release that the machine has not configured.
#[derive(Clone, Debug, Default)]
pub struct Wide {
    /// The suite that `-t` named: the release's backports.
    pub suite: String,
    /// What must be typed so that the machine has it; empty if it is configured.
    pub configure: String,
    /// What apt said.
    pub answer: Answer,
}

/// What to ask apt for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Question {
    /// The machine's own sources.
    Own,
    /// Those and the release's other suites.
    Wide,
}

/// What is to be done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Ask, and decide again.
    Ask(Question),
    /// Install.
    Install(Plan),
    /// It is not available from here.
    Refuse {
        /// Why.
        why: String,
        /// What to type.
        hint: String,
    },
}

/// An installation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// From which sources.
    pub from: Question,
    /// The suite to prefer.
    pub suite: Option<String>,
    /// What apt is told to install.
    pub packages: &'static [&'static str],
    /// What comes with them, and what is upgraded, as apt says.
    pub changes: Changes,
}

/// What apt's simulation would do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Changes {
    /// New packages.
    pub installed: Vec<String>,
    /// Packages that get a newer version.
    pub upgraded: Vec<String>,
    /// Packages that would go.
    pub removed: Vec<String>,
    /// Packages that would get an older version.
    pub downgraded: Vec<String>,
}

impl Changes {
    /// Reads a simulation.
    ///
    /// # Errors
    /// apt has no solution; its words.
    pub fn read(simulation: &str) -> Result<Self, String> {
        let mut changes = Self::default();
        let (mut downgrades, mut broken) = (false, Vec::new());
        for line in simulation.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("Remv"), Some(name), _) => changes.removed.push(name.to_string()),
                (Some("Inst"), Some(name), Some(old)) if old.starts_with('[') => {
                    changes.upgraded.push(name.to_string());
                }
                (Some("Inst"), Some(name), _) => changes.installed.push(name.to_string()),
                (Some("E:"), ..) => broken.push(line.trim_start_matches("E: ").to_string()),
                _ if line.contains(" : ") && line.starts_with(' ') => {
                    broken.push(line.trim().to_string());
                }
                _ => {}
            }
            // "The following packages will be DOWNGRADED:", and then their names, indented.
            downgrades = line.contains("DOWNGRADED:") || (downgrades && line.starts_with(' '));
            if downgrades && line.starts_with(' ') {
                changes.downgraded.extend(line.split_whitespace().map(String::from));
            }
        }
        changes.upgraded.retain(|name| !changes.downgraded.contains(name));
        if broken.is_empty() { Ok(changes) } else { Err(broken.join("; ")) }
    }

    /// Why they are not to be made.
    fn objection(&self) -> Option<String> {
        let list = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("apt would {what} {}", names.join(", ")))
        };
        list("remove", &self.removed).or_else(|| list("downgrade", &self.downgraded))
    }
}

impl Answer {
    /// The version of `package` that the simulation would install; without one, the newest that is listed, which is then
    /// installed already.
    pub(super) fn version(&self, package: &str) -> Option<Version> {
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let lines = self.simulation.lines().map(words);
        let mut ours =
            lines.filter(|line| line.len() > 2 && line[0] == "Inst" && line[1] == package);
        let planned = ours
            .next()
            .and_then(|line| Version::parse(line.iter().find_map(|word| word.strip_prefix('('))?));
        let listed =
            self.versions.lines().filter_map(|line| Version::parse(line.split('|').nth(1)?));
        planned.or_else(|| listed.max())
    }
}

/// Decides how `need` is available.
#[must_use]
pub fn decide(need: Need, facts: &Facts) -> Decision {
    let packages = super::packages::debian(need);
    match facts.manager {
        Some(Manager::Apt) => {}
        manager => {
            let why = "it can be installed from here only with apt-get".to_string();
            return Decision::Refuse { why, hint: super::packages::hint(need, manager) };
        }
    }
    let Some(own) = &facts.own else { return Decision::Ask(Question::Own) };
    let own = judge(need, own);
    if let (Ok(changes), false) = (&own, is_qemu(need)) {
        return install(facts, Plan::own(packages, changes.clone()));
    }
    let Some(wide) = &facts.wide else { return Decision::Ask(Question::Wide) };
    let wider = wide.as_ref().map_err(|reason| format!("more suites: {reason}"));
    let wider = wider.and_then(|wide| match judge(need, &wide.answer) {
        Ok(changes) => Ok((wide, changes)),
        Err(reason) => Err(format!("{}: {reason}", wide.suite)),
    });
    match (wider, own) {
        (Ok((wide, changes)), own) => {
            // The same version from the machine's own sources needs no other suite.
            let [first, more] = [facts.own.as_ref(), Some(&wide.answer)]
                .map(|answer| answer.and_then(|answer| answer.version(packages[0])));
            let enough = first >= more;
            if let (Ok(changes), true) = (own, enough) {
                return install(facts, Plan::own(packages, changes));
            }
            let (from, suite) = (Question::Wide, Some(wide.suite.clone()));
            install(facts, Plan { from, suite, packages, changes })
        }
        (Err(_), Ok(changes)) => install(facts, Plan::own(packages, changes)),
        (Err(wider), Err(own)) => Decision::Refuse {
            why: format!("the configured sources: {own}; {wider}"),
            hint: super::packages::by_other_means(need),
        },
    }
}

fn is_qemu(need: Need) -> bool {
    matches!(need, Need::Qemu | Need::QemuForPmu)
}

/// What an answer comes to, or what is wrong with it.
fn judge(need: Need, answer: &Answer) -> Result<Changes, String> {
    let changes = Changes::read(&answer.simulation)?;
    if let Some(objection) = changes.objection() {
        return Err(objection);
    }
    let newest = answer.version(super::packages::debian(need)[0]);
    if need == Need::QemuForPmu && !newest.is_some_and(Version::is_good) {
        let newest = newest.map_or("none".to_string(), |version| version.to_string());
        return Err(format!("the newest QEMU there is {newest}; needed: {}", qemu::good()));
    }
    Ok(changes)
}

/// Installs where that is allowed; else says what to type.
fn install(facts: &Facts, plan: Plan) -> Decision {
    if facts.root {
        return Decision::Install(plan);
    }
    let configure = match (&facts.wide, plan.from) {
        (Some(Ok(wide)), Question::Wide) => wide.configure.as_str(),
        _ => "",
    };
    let why = "installing it needs root".to_string();
    let hint = format!("Type: {configure}sudo apt-get update && sudo {}", plan.command());
    Decision::Refuse { why, hint }
}

impl Plan {
    fn own(packages: &'static [&'static str], changes: Changes) -> Self {
        Self { from: Question::Own, suite: None, packages, changes }
    }

    /// apt-get's arguments. `--no-remove` makes apt refuse what the simulation did not show.
    #[must_use]
    pub fn arguments(&self) -> Vec<&str> {
        let mut arguments = vec!["install", "--no-remove", "--no-install-recommends"];
        if let Some(suite) = &self.suite {
            arguments.extend(["-t", suite]);
        }
        arguments.extend(self.packages);
        arguments
    }

    /// The same as a command to type.
    #[must_use]
    pub fn command(&self) -> String {
        format!("apt-get {}", self.arguments().join(" "))
    }
}
