//! The documents' blocks and command lines.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use std::fs;
use std::path::{Path, PathBuf};

/// Documents whose examples a reader types.
const DOCUMENTS: [&str; 4] =
    ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "arch/events/README.md"];

/// A fenced block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its document.
    pub file: String,
    /// The line of its first line, from 1.
    pub line: usize,
    /// What stands behind the fence.
    pub language: String,
    /// What stands in it.
    pub text: String,
    /// The paragraph before it.
    pub before: String,
}

/// The checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the checkout")
}

/// The documents, and the pages of the guide in the order of their paths.
fn documents() -> Vec<PathBuf> {
    let mut guide = Vec::new();
    pages(&root().join("docs"), &mut guide);
    guide.sort();
    DOCUMENTS.iter().map(|name| root().join(name)).chain(guide).collect()
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// How the names of the guide's tutorials begin: their blocks are run in their order, by `documents/tutorials.rs`.
const TUTORIAL: &str = "tutorial-";

fn is_tutorial(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TUTORIAL))
}

/// Every fenced block of every document but the tutorials.
pub fn blocks() -> Vec<Block> {
    documents().iter().filter(|path| !is_tutorial(path)).flat_map(|path| of(path)).collect()
}

/// Every tutorial's file.
pub fn tutorials() -> Vec<PathBuf> {
    documents().into_iter().filter(|path| is_tutorial(path)).collect()
}

/// Every fenced block of one document.
pub fn of(path: &Path) -> Vec<Block> {
    let document = fs::read_to_string(path).expect("a document");
    let mut found: Vec<Block> = Vec::new();
    let (mut inside, mut paragraph) = (false, String::new());
    for (event, range) in Parser::new(&document).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                inside = true;
                let line = document[..range.start].matches('\n').count() + 2;
                let file = path.strip_prefix(root()).expect("below it").display().to_string();
                let (language, text) = (language.to_string(), String::new());
                let before = std::mem::take(&mut paragraph);
                found.push(Block { file, line, language, text, before });
            }
            Event::Text(text) if inside => found.last_mut().expect("it began").text.push_str(&text),
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Start(Tag::Paragraph) => paragraph.clear(),
            Event::Text(text) => paragraph.push_str(&text),
            Event::Code(code) => paragraph.push_str(&format!("`{code}`")),
            Event::SoftBreak => paragraph.push(' '),
            _ => {}
        }
    }
    found
}

/// What stands in back quotes within paragraphs, with its document.
pub fn quoted() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for path in documents() {
        let document = fs::read_to_string(&path).expect("a document");
        let codes = Parser::new(&document);
        found.extend(codes.filter_map(|event| match event {
            Event::Code(code) => Some((path.clone(), code.to_string())),
            _ => None,
        }));
    }
    found
}

/// Command lines of the tool within paragraphs, without the parts that may be left out.
pub fn inline() -> Vec<String> {
    let mut found = Vec::new();
    for (_, code) in quoted() {
        if !code.starts_with("cargo xtask ") || code.contains("...") || code.contains('|') {
            continue;
        }
        let kept: Vec<&str> =
            code.split('[').map(|part| part.split(']').next_back().unwrap_or(part)).collect();
        // A folder's name stands for itself.
        found.push(kept.concat().trim().to_string());
    }
    found
}

impl Block {
    /// Whether it is a job.
    pub fn is_job(&self) -> bool {
        self.language == "toml"
    }

    /// Whether it has command lines.
    pub fn has_commands(&self) -> bool {
        let first = self.text.trim_start_matches("$ ");
        !self.is_job()
            && ["cargo ", "sudo ", "RUSTC_BOOTSTRAP="].iter().any(|word| first.starts_with(word))
    }
}

/// A block's command lines: all of its lines, or those after a prompt where it shows what they print.
pub fn commands(block: &Block) -> Vec<String> {
    if !block.has_commands() {
        return Vec::new();
    }
    let prompted = block.text.starts_with("$ ");
    let lines = block.text.lines().filter(|line| !line.is_empty());
    let lines =
        lines.filter_map(|line| if prompted { line.strip_prefix("$ ") } else { Some(line) });
    // A comment begins after a space, and no example has a `#` in quotes.
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim_end().to_string()).collect()
}
