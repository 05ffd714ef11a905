//! What a page shows. Texts are plain: whatever they hold is escaped.

/// How something is to be taken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// It went well.
    Good,
    /// Something to know.
    Warn,
    /// It went wrong.
    Bad,
}

/// A few words with a tone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Badge {
    /// The tone.
    pub tone: Tone,
    /// The words; empty: there is nothing to say.
    pub text: String,
}

/// The whole page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Stands above.
    pub title: String,
    /// What made the page, at its end.
    pub made_by: String,
    /// The runs, side by side if there are several.
    pub runs: Vec<Run>,
    /// What changed from the first to the second run, if they are compared.
    pub changes: Option<Changes>,
    /// The items, each of all runs that have it.
    pub items: Vec<Item>,
    /// Instruction forms.
    pub forms: Vec<Table>,
    /// What was found out about the machines.
    pub found: Vec<Table>,
    /// Conformance suites.
    pub suites: Vec<Matrix>,
}

/// One run: what it ran on, and how far to trust it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Its short name, where several runs stand side by side.
    pub name: String,
    /// How it went.
    pub verdict: Badge,
    /// Machine, PMU and tools, name and value.
    pub facts: Vec<(String, String)>,
    /// How far to trust the figures.
    pub trust: Vec<Trust>,
    /// What else is to be known.
    pub notes: Vec<Note>,
}

/// A label that says how far to trust figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// Whether that is good.
    pub tone: Tone,
    /// The label.
    pub head: String,
    /// What it means, in a sentence or two.
    pub text: String,
}

/// Something to be known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    /// How bad it is.
    pub tone: Tone,
    /// What kind of note.
    pub label: String,
    /// The note; may have several lines.
    pub text: String,
}

/// An item of the job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Item {
    /// Its index in the first run that has it.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// What was done with it, in one word.
    pub kind: String,
    /// Whether it met what was expected.
    pub verdict: Badge,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Everything else, of each run that has it: the run's index, and what is shown of it.
    pub bodies: Vec<(usize, Vec<Part>)>,
    /// Whether its parts are shown without being asked for.
    pub open: bool,
}

/// One figure of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// What it counts, where that is not said by the name.
    pub unit: String,
    /// Its value in each run. Those of different units are not subtracted.
    pub values: Vec<Option<Value>>,
}

/// A figure's value in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// The value; absent if it was not counted.
    pub value: Option<f64>,
    /// Least, mean and greatest, of figures that have several runs.
    pub range: Option<[f64; 3]>,
    /// How many runs.
    pub runs: u64,
    /// How the runs agree.
    pub spread: Badge,
    /// Whether it missed what was expected, or why there is none.
    pub verdict: Badge,
    /// It is scaled from a part of the time.
    pub scaled: bool,
    /// What it counts, if that is not what the figure does in the first run that has it.
    pub other_unit: Option<String>,
}

/// A part of what is shown of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A sentence.
    Text(String),
    /// Something to be known.
    Note(Note),
    /// A table.
    Table(Table),
    /// How values are distributed over the runs.
    Spreads(Vec<Spread>),
    /// A plot.
    Plot(Plot),
    /// A heat map.
    Heat(Heat),
    /// A flame graph.
    Flame(Flame),
    /// Machine code.
    Code(Code),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it is.
    pub caption: String,
    /// Its columns: the head, and whether they hold numbers.
    pub columns: Vec<(String, bool)>,
    /// Its rows.
    pub rows: Vec<Vec<Cell>>,
    /// Whether it can be filtered: for tables of many rows.
    pub filter: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What stands there; may have several lines.
    pub text: String,
    /// How it is to be taken.
    pub tone: Tone,
    /// A bar after the text, as a share of the cell's width.
    pub share: Option<f64>,
    /// It is code.
    pub code: bool,
}

/// The values of one figure over the runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Whose.
    pub name: String,
    /// Each run's, in order; empty if only the bounds are known.
    pub values: Vec<f64>,
    /// Least and greatest.
    pub bounds: [f64; 2],
    /// How many different values occurred.
    pub distinct: u64,
}

/// Lines over a common axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What the horizontal axis is.
    pub x_label: String,
    /// What the vertical axis is.
    pub y_label: String,
    /// Places on the horizontal axis, rising.
    pub x: Vec<f64>,
    /// Where the first place begins, for steps.
    pub from: f64,
    /// What is drawn.
    pub series: Vec<Series>,
    /// A vertical line and what it marks.
    pub mark: Option<(f64, String)>,
    /// Each value holds from the place before to its own; else values are points that lines join.
    pub steps: bool,
}

/// One line of a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its value at each place.
    pub y: Vec<f64>,
    /// Least and greatest at each place, where they differ; may be empty.
    pub band: Vec<[f64; 2]>,
}

/// A figure for each two of something: a square whose cells are the darker, the greater they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// What it shows.
    pub title: String,
    /// What the rows are.
    pub rows_are: String,
    /// What the columns are.
    pub columns_are: String,
    /// The names of rows and columns.
    pub labels: Vec<String>,
    /// The cells, row by row; absent: there is nothing.
    pub values: Vec<Vec<Option<f64>>>,
}

/// Samples by what lies in what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flame {
    /// What it shows.
    pub title: String,
    /// What is counted.
    pub unit: String,
    /// The outermost frames.
    pub frames: Vec<Frame>,
}

/// A frame of a flame graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Its name.
    pub name: String,
    /// Samples in it and in what it holds.
    pub count: u64,
    /// What it holds.
    pub inner: Vec<Frame>,
}

/// Machine code, instruction by instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Code {
    /// What code.
    pub caption: String,
    /// What is counted at each instruction.
    pub counts: Vec<String>,
    /// The instructions.
    pub rows: Vec<Instruction>,
}

/// An instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instruction {
    /// A label in front of it.
    pub label: Option<String>,
    /// Its offset or address.
    pub at: String,
    /// Its bytes, hexadecimal.
    pub bytes: String,
    /// Its text.
    pub text: String,
    /// Its function, file and line, as far as they are known.
    pub line: String,
    /// The counts: text, and its share of all.
    pub counts: Vec<Option<(String, f64)>>,
}

/// Checks of one suite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Its name.
    pub name: String,
    /// What it came to in each run.
    pub summaries: Vec<String>,
    /// The checks, those of one family together.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Check {
    /// Its family.
    pub family: String,
    /// Its name within the family.
    pub name: String,
    /// Where the expectation comes from.
    pub source: String,
    /// What came of it in each run.
    pub results: Vec<Option<Checked>>,
}

/// What came of a check in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// In a word: `pass`, `fail`, `skip`, `erratum`.
    pub verdict: Badge,
    /// What should be.
    pub expected: String,
    /// What was.
    pub seen: String,
}

/// Two runs, compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// What it came to.
    pub verdict: Badge,
    /// The same in figures.
    pub summary: String,
    /// What else differs: what, old, new.
    pub differences: Vec<[String; 3]>,
    /// What else is to be known.
    pub notes: Vec<Note>,
    /// The figures.
    pub figures: Vec<Change>,
}

/// A figure, compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Its item.
    pub item: String,
    /// Its name.
    pub figure: String,
    /// What it counts.
    pub unit: String,
    /// What it was.
    pub old: Option<f64>,
    /// What it is.
    pub new: Option<f64>,
    /// From the least to the greatest change that the runs do not contradict.
    pub interval: Option<[f64; 2]>,
    /// How far it may get worse, and what is worse.
    pub allowed: String,
    /// What became of it.
    pub outcome: Badge,
    /// Why.
    pub reason: String,
    /// It is as it was.
    pub quiet: bool,
}

impl Figure {
    /// Whether its values are of one unit, so that they can be compared.
    #[must_use]
    pub fn has_one_unit(&self) -> bool {
        self.values.iter().flatten().all(|value| value.other_unit.is_none())
    }
}

impl Badge {
    /// Words with a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

impl Cell {
    /// A plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A text with a tone.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone, ..Self::default() }
    }

    /// Code.
    pub fn code(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: true, ..Self::default() }
    }

    /// A number with a bar after it.
    pub fn bar(text: impl Into<String>, share: f64) -> Self {
        Self { text: text.into(), share: Some(share), ..Self::default() }
    }
}
