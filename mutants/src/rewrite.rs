//! A file with all of its mutants, each after its number.

use crate::items::Item;
use crate::sites::{ConstFn, Site};
use std::collections::HashMap;
use std::ops::Range;

/// A mutant in its file.
#[derive(Clone, Debug)]
pub struct Planted<'m> {
    pub number: usize,
    pub site: Site,
    pub span: Range<usize>,
    pub replacement: &'m str,
}

/// A file that was written, and whose text is where in it.
#[derive(Debug, Default)]
pub struct Written {
    pub text: String,
    /// The text of one mutant.
    pub own: Vec<(Range<usize>, usize)>,
    /// An expression with all of its mutants.
    pub choices: Vec<(Range<usize>, Vec<usize>)>,
}

enum Edit<'m> {
    Delete,
    Insert(&'m Planted<'m>),
    Choose(Vec<&'m Planted<'m>>),
    /// Of this constant.
    Read(&'m Item, Vec<&'m Planted<'m>>),
}

struct Change<'m> {
    range: Range<usize>,
    edit: Edit<'m>,
}

/// Writes the file.
pub fn rewrite(
    text: &str,
    mutants: &[Planted],
    plain: &[&ConstFn],
    items: &HashMap<String, Item>,
) -> Written {
    let mut read: HashMap<&str, Vec<&Planted>> = HashMap::new();
    let mut changes: Vec<Change> = Vec::new();
    for function in plain {
        changes.push(Change { range: function.keyword.clone(), edit: Edit::Delete });
    }
    for mutant in mutants {
        match &mutant.site {
            Site::Return(at) | Site::Guard(at) => {
                changes.push(Change { range: *at..*at, edit: Edit::Insert(mutant) });
            }
            Site::Choice(range) | Site::Iterator(range) => {
                let same = changes.iter_mut().find_map(|change| match &mut change.edit {
                    Edit::Choose(list) if change.range == *range => Some(list),
                    _ => None,
                });
                match same {
                    Some(list) => list.push(mutant),
                    None => changes
                        .push(Change { range: range.clone(), edit: Edit::Choose(vec![mutant]) }),
                }
            }
            Site::Item(name) => read.entry(name).or_default().push(mutant),
            Site::Constant | Site::Never | Site::Alone => {}
        }
    }
    for (name, mutants) in read {
        let item = &items[name];
        for range in &item.uses {
            changes.push(Change { range: range.clone(), edit: Edit::Read(item, mutants.clone()) });
        }
    }
    // What encloses comes first, and what is put before a byte before what begins there.
    changes.sort_by_key(|change| {
        let insert = matches!(change.edit, Edit::Insert(_));
        (change.range.start, !insert, std::cmp::Reverse(change.range.end))
    });
    let mut out = Written::default();
    emit(text, 0..text.len(), &changes, &mut out);
    out
}

/// Writes `range`, whose pieces begin at the first of `pieces`.
fn emit(text: &str, range: Range<usize>, changes: &[Change], out: &mut Written) {
    let mut at = range.start;
    let mut index = 0;
    while let Some(change) = changes.get(index) {
        out.text += &text[at..change.range.start];
        at = change.range.end;
        let inside = changes[index + 1..].iter().take_while(|inner| inner.range.start < at).count();
        match &change.edit {
            Edit::Delete => {}
            Edit::Insert(mutant) => insert(mutant, out),
            Edit::Choose(mutants) => {
                let inner = &changes[index + 1..index + 1 + inside];
                choose(text, &change.range, mutants, inner, out);
            }
            Edit::Read(item, mutants) => read(text, &change.range, item, mutants, out),
        }
        index += 1 + inside;
    }
    out.text += &text[at..range.end];
}

fn switch(number: usize) -> String {
    format!("crate::__schemata::planted({number})")
}

fn insert(mutant: &Planted, out: &mut Written) {
    let begin = out.text.len();
    let on = switch(mutant.number);
    out.text += &match mutant.site {
        Site::Guard(_) => format!(" if !{on}"),
        // As the one expression of a body that would be: its type is known.
        _ => format!("if {on} {{ return {}; }} ", mutant.replacement),
    };
    out.own.push((begin..out.text.len(), mutant.number));
}

fn choose(
    text: &str,
    range: &Range<usize>,
    mutants: &[&Planted],
    inner: &[Change],
    out: &mut Written,
) {
    let begin = out.text.len();
    // Iterators of several types become one.
    let (one, rest, close) = match mutants[0].site {
        Site::Iterator(_) => {
            ("crate::__schemata::Either::Planted(", "crate::__schemata::Either::Rest(", ")")
        }
        _ => ("", "", ""),
    };
    out.text += "(";
    for mutant in mutants {
        out.text += &format!("if {} {{ {one}", switch(mutant.number));
        let own = out.text.len();
        out.text += &text[range.start..mutant.span.start];
        out.text += mutant.replacement;
        out.text += &text[mutant.span.end..range.end];
        out.own.push((own..out.text.len(), mutant.number));
        out.text += close;
        out.text += " } else { ";
        out.text += rest;
    }
    out.text += "{ ";
    emit(text, range.clone(), inner, out);
    out.text += " }";
    for _ in mutants {
        out.text += close;
        out.text += " }";
    }
    out.text += ")";
    let numbers = mutants.iter().map(|mutant| mutant.number).collect();
    out.choices.push((begin..out.text.len(), numbers));
}

/// A constant, where it is read.
fn read(text: &str, range: &Range<usize>, item: &Item, mutants: &[&Planted], out: &mut Written) {
    let begin = out.text.len();
    let ty = &text[item.ty.clone()];
    out.text += "(";
    for mutant in mutants {
        let before = &text[item.value.start..mutant.span.start];
        let behind = &text[mutant.span.end..item.value.end];
        let (on, new) = (switch(mutant.number), mutant.replacement);
        out.text += &format!(
            "if {on} {{ const __PLANTED: {ty} = {before}{new}{behind}; __PLANTED }} else "
        );
    }
    out.text += &format!("{{ {} }})", &text[range.clone()]);
    let numbers = mutants.iter().map(|mutant| mutant.number).collect();
    out.choices.push((begin..out.text.len(), numbers));
}
