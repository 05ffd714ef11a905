//! Mutants tried on tests.

use crate::Arguments;
use crate::build::{Built, build};
use crate::journal::Journal;
use crate::mutant::{Fate, Mutant, Tried};
use crate::plan::Plan;
use crate::say;
use crate::tests::{End, Tests};
use anyhow::Result;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

/// All mutants, and what is known of them.
pub struct Run<'a> {
    mutants: &'a [Mutant],
    arguments: &'a Arguments,
    plan: Plan<'a>,
    journal: Journal,
    known: Vec<Tried>,
    begin: Instant,
}

impl<'a> Run<'a> {
    /// Reads the files.
    pub fn new(mutants: &'a [Mutant], arguments: &'a Arguments) -> Result<Self> {
        let Arguments { journal, resume, source, .. } = arguments;
        let (journal, known, alone) = Journal::open(journal, *resume, mutants, source)?;
        let numbers: HashSet<usize> = known.iter().map(|(number, ..)| *number).collect();
        if !known.is_empty() {
            say(&format!("{} of {} mutants are known", known.len(), mutants.len()));
        }
        let mut plan = Plan::new(mutants, &numbers, &arguments.copy)?;
        plan.alone.extend(alone.into_iter().map(|number| (number, "no switch".to_string())));
        if !arguments.package.is_empty() {
            plan.packages = arguments.package.iter().map(String::as_str).collect();
        }
        Ok(Self { mutants, arguments, plan, journal, known, begin: Instant::now() })
    }

    /// Tries all of them.
    pub fn run(mut self) -> Result<Vec<Tried>> {
        if self.known.len() == self.mutants.len() {
            return Ok(self.known);
        }
        let built = self.plan.build();
        let tried = built.and_then(|programs| {
            self.note_planned()?;
            self.try_switched(programs)
        });
        // The copy as it was, whatever came of it.
        self.plan.restore()?;
        let (mut tried, tests) = tried?;
        let unviable = self.plan.unviable.iter();
        tried.extend(unviable.map(|(&number, why)| (number, Fate::Unviable, why.clone())));
        if !self.arguments.no_alone {
            self.try_alone(&mut tried, &tests)?;
        }
        tried.extend(self.known);
        tried.sort_by_key(|(number, ..)| *number);
        Ok(tried)
    }

    /// Notes what the build told, which takes longer to find than all tests: a run that is broken off later keeps it.
    fn note_planned(&self) -> Result<()> {
        for (number, why) in &self.plan.unviable {
            self.journal.add(&self.mutants[*number], &Fate::Unviable, why)?;
        }
        for (number, why) in &self.plan.alone {
            self.journal.add(&self.mutants[*number], &Fate::Alone, why)?;
        }
        Ok(())
    }

    fn try_switched(&self, programs: Vec<(PathBuf, PathBuf)>) -> Result<(Vec<Tried>, Tests)> {
        say(&format!("built after {} s", self.begin.elapsed().as_secs()));
        let tests = Tests::find(programs, &self.arguments.copy.join("target"), self.jobs())?;
        for name in &tests.failing {
            say(&format!("{name} fails without a mutant: it is not run"));
        }
        let numbers = self.plan.numbers();
        let (switched, count, time) =
            (numbers.len(), tests.count(), self.begin.elapsed().as_secs());
        say(&format!("{count} tests run after {time} s; {switched} mutants are switched"));
        let queue = Mutex::new(numbers.into_iter());
        let tried = Mutex::new(Vec::new());
        let worker = || -> Result<()> {
            loop {
                let Some(number) = queue.lock().expect("no thread panics").next() else {
                    return Ok(());
                };
                let end = tests.try_switched(number, &self.mutants[number].read.file)?;
                let one = self.tell(number, end, tests.reached(number));
                self.journal.add(&self.mutants[number], &one.1, &one.2)?;
                tried.lock().expect("no thread panics").push(one);
            }
        };
        let jobs = self.jobs();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        say(&format!("tried after {} s", self.begin.elapsed().as_secs()));
        Ok((tried.into_inner().expect("no thread panics"), tests))
    }

    fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.arguments.jobs.unwrap_or_else(processors)
    }

    fn tell(&self, number: usize, end: End, reached: usize) -> Tried {
        let (fate, how) = match end {
            End::Passed => (Fate::Missed { reached }, format!("{reached} tests reach it")),
            End::Failed(test) => (Fate::Caught, test),
            End::TimedOut => (Fate::TimedOut, "time is up".to_string()),
        };
        if fate.is_missed() {
            say(&format!("missed, {how}: {}", self.mutants[number].read.name));
        }
        (number, fate, how)
    }

    /// Tries what cannot be switched, with a build for each: its own package's tests, then all.
    fn try_alone(&self, tried: &mut Vec<Tried>, tests: &Tests) -> Result<()> {
        say(&format!("{} mutants with a build of their own", self.plan.alone.len()));
        for &number in self.plan.alone.keys() {
            let mutant = &self.mutants[number];
            let own = [mutant.read.package.as_str()];
            let mut one = self.plan.with_one(mutant, || self.try_one(number, &own, tests))?;
            let all = &self.plan.packages;
            if one.1.is_missed() && all[..] != own {
                one = self.plan.with_one(mutant, || self.try_one(number, all, tests))?;
            }
            self.journal.add(mutant, &one.1, &one.2)?;
            tried.push(one);
        }
        Ok(())
    }

    fn try_one(&self, number: usize, packages: &[&str], tests: &Tests) -> Result<Tried> {
        Ok(match build(self.plan.copy, packages)? {
            Built::Programs(programs) => self.tell(
                number,
                tests.try_all(programs, &self.mutants[number].read.file)?,
                tests.count(),
            ),
            Built::Errors(errors) => (number, Fate::Unviable, errors[0].text.clone()),
        })
    }
}
