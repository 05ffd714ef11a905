//! Somebody at the console of an item, who controls what a processor counts.

use super::super::tasks::Processors;
use super::platform::Processor;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::time::tsc;
use core::hint::spin_loop;
use kernel::console::{Console, Controlled};
use kernel::counting::job::CountRun;
use kernel::events::Known;
use kernel::tasks::Machine as _;
use protocol::console::Command;
use protocol::job::count::Count;
use protocol::record::ConsoleSet;

/// The console, and what its lines are about.
pub struct Remote<'a> {
    console: Console<'a>,
    item: &'a Count<'a>,
    known: Option<&'a Known<'a>>,
    /// Why nothing can be counted, if that is so.
    nothing: String,
    /// TSC ticks that a task may wait.
    most: u64,
}

impl<'a> Remote<'a> {
    /// The console of an item of that index, of whose events nothing can be counted for the reasons `nothing`, if anything is there.
    /// `None`: the item has none, or nothing can come in.
    pub fn open(
        item: &'a Count<'a>,
        index: u32,
        (known, nothing): (Option<&'a Known<'a>>, String),
        processors: &Processors<'a>,
    ) -> Option<Self> {
        let terminal = processors.heart().filter(|_| item.console)?.terminal()?;
        let hz = u128::from(processors.tsc_hz());
        let most = u128::from(item.limit_us) * hz / 1_000_000;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        Some(Self { console: Console::open(index, terminal), item, known, nothing, most })
    }

    /// Does what lines have come in that say something, between two tasks.
    pub fn listen(&mut self, counted: Option<(&mut CountRun, &mut Processor)>) {
        let (item, known, nothing) = (self.item, self.known, &*self.nothing);
        self.console.listen(&mut Counted { counted, item, known, nothing });
    }

    /// Waits until somebody says that `task` may go on. Nothing counts meanwhile. `alive` is told the time.
    ///
    /// # Errors
    /// A register refuses.
    pub fn wait(
        &mut self,
        task: u16,
        mut counted: Option<(&mut CountRun, &mut Processor)>,
        alive: &mut dyn FnMut(u64),
    ) -> Result<(), String> {
        if let Some((run, processor)) = &mut counted {
            run.halt(*processor).map_err(|error| error.to_string())?;
        }
        let (item, known, begin) = (self.item, self.known, tsc::now());
        let mut counted = Counted { counted, item, known, nothing: &self.nothing };
        self.console.begin_wait(task, &mut counted);
        while self.console.is_waiting() {
            self.console.listen(&mut counted);
            let now = tsc::now();
            alive(now);
            if self.console.is_waiting() && now.wrapping_sub(begin) > self.most {
                self.console.is_late(&mut counted);
            }
            spin_loop();
        }
        counted.counted.map_or(Ok(()), |(run, processor)| {
            run.go_on(processor).map_err(|error| error.to_string())
        })
    }
}

/// What a processor counts, if it does.
struct Counted<'a> {
    counted: Option<(&'a mut CountRun, &'a mut Processor)>,
    item: &'a Count<'a>,
    known: Option<&'a Known<'a>>,
    nothing: &'a str,
}

impl Controlled for Counted<'_> {
    fn now(&mut self) -> u64 {
        self.counted.as_mut().map_or(0, |(run, processor)| run.since_begin(*processor))
    }

    fn obey(&mut self, command: &Command) -> Result<Vec<ConsoleSet>, String> {
        let Some(((run, processor), known)) = self.counted.as_mut().zip(self.known) else {
            return Err(alloc::format!("nothing is counted: {}", self.nothing));
        };
        run.obey(command, (self.item, known), *processor)
    }
}
