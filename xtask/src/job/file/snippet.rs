//! A snippet of a job file: what it leaves open decided, and what is asked of every item.

use super::lines::{Lines, Spans, Text};
use super::raw::{RawOptions, RawSnippet};
use super::sections::FileItem;
use super::{Around, Options, SnippetFile};
use crate::events::EventText;
use crate::job::errors::{JobError, Place};
use crate::job::exact::RawExact;
use crate::job::expect::{CriteriaFile, Names, is_mnemonic, of_stepping};
use crate::job::form::Wanted;
use crate::job::function::FunctionFile;
use crate::job::history::RawHistory;
use crate::job::memory::{self, MemoryFile};
use crate::metrics::request::Ask;
use protocol::bits::Bits;
use protocol::job::Difference;
use protocol::job::criteria::{Expect, TSC};
use protocol::job::exact::{EVENTS, Filter};
use protocol::job::limits::LimitError;
use toml::Spanned;

/// Decides what a snippet leaves open.
pub(super) fn decide(
    spanned: Spanned<RawSnippet>,
    function: Option<FunctionFile>,
    defaults: &RawOptions,
    text: &Text,
) -> SnippetFile {
    let whole = text.lines(&spanned.span());
    let raw = spanned.into_inner();
    let base = Options::default();
    let place = |code: &Option<Spanned<String>>| {
        code.as_ref().map_or(Lines::default(), |code| text.lines(&code.span()))
    };
    let [asm, one_time_init, init, late_init] =
        [&raw.asm, &raw.one_time_init, &raw.init, &raw.late_init].map(place);
    let code = |code: Option<Spanned<String>>| code.map(Spanned::into_inner).unwrap_or_default();
    let body = code(raw.asm);
    let (latency, throughput) = (Vec::from_iter(raw.latency), Vec::from_iter(raw.throughput));
    let wanted = (!latency.is_empty() || !throughput.is_empty()).then_some(Wanted {
        latency,
        throughput,
        lenient: false,
        catalog: None,
        ports: false,
    });
    let history = raw.history.as_ref().or(defaults.history.as_ref());
    let history = history.and_then(RawHistory::decide);
    // A history is of one copy, as cycle by cycle there is nothing to divide.
    let copies = if history.is_some() { 1 } else { base.unroll };
    let mut file = SnippetFile {
        name: raw.name.unwrap_or_else(|| match &function {
            Some(function) => function.item_name(),
            None => name_of(&body),
        }),
        init: code(raw.init),
        one_time_init: code(raw.one_time_init),
        late_init: code(raw.late_init),
        syntax: raw.syntax.or(defaults.syntax).unwrap_or_default(),
        options: Options {
            unroll: raw.unroll.or(defaults.unroll).unwrap_or(copies),
            unroll_given: raw.unroll.or(defaults.unroll).is_some(),
            loop_count: raw.r#loop.or(defaults.r#loop).unwrap_or(base.loop_count),
            warmup: raw.warmup.or(defaults.warmup).unwrap_or(base.warmup),
            runs: raw.runs.or(defaults.runs).unwrap_or(base.runs),
            difference: raw.difference.or(defaults.difference).unwrap_or(base.difference),
            values: raw.values.or(defaults.values).unwrap_or(base.values),
            events: raw.events.or_else(|| defaults.events.clone()).unwrap_or(base.events),
            around: Around {
                initial_warmup: raw.initial_warmup.or(defaults.initial_warmup).unwrap_or_default(),
                alignment_offset: raw
                    .alignment_offset
                    .or(defaults.alignment_offset)
                    .unwrap_or_default(),
                no_memory: raw.no_memory.or(defaults.no_memory).unwrap_or_default(),
                drain_frontend: raw.drain_frontend.or(defaults.drain_frontend).unwrap_or_default(),
            },
            machine: {
                let base = defaults.machine.clone().unwrap_or_default();
                raw.machine.map_or(base.clone(), |machine| machine.over(&base))
            },
            only_by_default: raw.only.is_none() && defaults.only.is_some(),
            only: raw
                .only
                .or_else(|| defaults.only.clone())
                .map_or(base.only, |only| only.decide()),
            bits: raw.bits.or(defaults.bits).unwrap_or(base.bits),
            memory: memory::over(&raw.memory, &defaults.memory),
        },
        criteria: CriteriaFile::new(raw.expect, raw.allow_uncounted, raw.limits),
        processors: None,
        history,
        exact: raw.exact.as_ref().or(defaults.exact.as_ref()).and_then(RawExact::decide),
        wanted,
        function,
        metrics: raw.metrics,
        asks: Vec::new(),
        spans: Some(Spans { whole, asm, one_time_init, init, late_init }),
        asm: body,
    };
    if file.function.is_some() {
        file.options.call_once();
        file.options.unroll = raw.unroll.unwrap_or(file.options.unroll);
        file.options.loop_count = raw.r#loop.unwrap_or(file.options.loop_count);
        file.options.difference = raw.difference.unwrap_or(file.options.difference);
        file.options.bits = raw.bits.unwrap_or(file.options.bits);
        file.options.around.no_memory = raw.no_memory.unwrap_or_default();
    }
    file
}

impl Options {
    /// Makes them those of a function, which is called once in each run, whatever holds for copies of code.
    pub(in crate::job) fn call_once(&mut self) {
        (self.unroll, self.loop_count, self.difference) = (1, 0, Difference::Empty);
        self.bits = Bits::SixtyFour;
        self.around.no_memory = false;
    }
}

/// A name for a snippet that has none: its code in one line, cut.
pub(in crate::job) fn name_of(asm: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = asm.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("; ");
    if line.is_empty() {
        return "empty".to_string();
    }
    line.chars().take(MAX_CHARS).collect()
}

impl SnippetFile {
    /// Of which instructions its events are counted. A default does not hold where nothing could count so: exact mode has filters of
    /// its own.
    pub(in crate::job) fn only(&self) -> Filter<'static> {
        match self.drops_only() {
            true => Filter::default(),
            false => self.options.only.clone(),
        }
    }

    /// Whether `only` of the defaults does not hold for it.
    pub(in crate::job) fn drops_only(&self) -> bool {
        let otherwise = self.exact.is_some() || self.history.is_some() || self.processors.is_some();
        self.options.only_by_default && otherwise
    }

    /// Whether there can be every figure that is expected.
    ///
    /// # Errors
    /// The first one that there cannot.
    pub(in crate::job) fn check_expected(&self, source: &str) -> Result<(), JobError> {
        let mut names =
            Names { events: Names::of_events(self.options.events.iter()), ..Names::default() };
        if self.exact.is_some() {
            // Stepping tells mnemonics as well, of which there are too many to list.
            let is_opcode = |expect: &&Expect| is_mnemonic(&expect.figure);
            let expect = self.criteria.expect.iter();
            names = of_stepping();
            names.whole.extend(expect.filter(is_opcode).map(|expect| expect.figure.to_string()));
        } else if self.history.is_some() {
            names.behind = &[", row "];
        } else {
            names.whole.push(TSC.to_string());
            names.whole.extend(self.options.machine.msr_names());
            if self.processors.is_some() {
                names.behind = &[" on cpu ", ", sum"];
                names.events.append(&mut names.whole);
            }
        }
        names.check(&self.criteria).map_err(|message| self.refused(source, message))
    }

    /// Where the snippet stands.
    #[must_use]
    pub fn place(&self, source: &str) -> Place {
        let position = self.spans.as_ref().map(|spans| (spans.whole.line, spans.whole.column));
        Place { file: source.to_string(), position }
    }

    /// The error that the snippet breaks a bound.
    pub(in crate::job) fn at(&self, source: &str, error: &LimitError) -> JobError {
        self.refused(source, error.to_string())
    }

    /// The error that `message` says.
    pub(in crate::job) fn refused(&self, source: &str, message: String) -> JobError {
        JobError::of_item("snippet", &self.place(source), &self.name, message)
    }
}

impl FileItem for SnippetFile {
    fn place(&self, source: &str) -> Place {
        Self::place(self, source)
    }

    fn asks(&self) -> &[Ask] {
        &self.asks
    }

    fn criteria(&self) -> &CriteriaFile {
        &self.criteria
    }

    fn criteria_mut(&mut self) -> &mut CriteriaFile {
        &mut self.criteria
    }

    fn memory(&self) -> &[MemoryFile] {
        &self.options.memory
    }

    fn memory_mut(&mut self) -> &mut Vec<MemoryFile> {
        &mut self.options.memory
    }

    fn events(&self) -> Vec<&EventText> {
        // What stepping tells has names of its own.
        let stepped =
            |event: &&EventText| self.exact.is_some() && EVENTS.contains(&&*event.to_string());
        let events = self.options.events.iter().filter(|event| !stepped(event));
        events.chain(self.history.iter().map(|history| &history.clock)).collect()
    }

    fn greatest_cpu(&self) -> Option<u16> {
        // Of a kind of core, cpu is no number of a processor.
        self.processors.filter(|on| on.core.is_none())?.cpu
    }

    fn check_expected(&self, source: &str) -> Result<(), JobError> {
        Self::check_expected(self, source)
    }

    fn refused(&self, source: &str, message: String) -> JobError {
        Self::refused(self, source, message)
    }
}

impl super::JobFile {
    /// What of the defaults does not hold for which snippet, each in a sentence.
    #[must_use]
    pub fn dropped(&self) -> Vec<String> {
        let dropped = self.snippets.iter().filter(|snippet| snippet.drops_only());
        let line = |snippet: &SnippetFile| {
            format!(
                "warning: `{}`: only of [defaults] does not hold for it: it is for events that a snippet counts, and exact has filters of its own",
                snippet.name
            )
        };
        dropped.map(line).collect()
    }
}
