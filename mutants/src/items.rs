//! Constants that are switched where they are used: none of them is needed while the compiler runs.

use crate::text::Text;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A constant that only its own module sees: its type, its value, and where it is read.
#[derive(Clone, Debug)]
pub struct Item {
    pub ty: Range<usize>,
    pub value: Range<usize>,
    pub uses: Vec<Range<usize>>,
}

/// Macros in which a name is no expression.
const NOT_EXPRESSIONS: [&str; 5] = ["asm", "bitflags", "global_asm", "matches", "naked_asm"];

struct Visitor<'t> {
    text: &'t Text<'t>,
    items: HashMap<String, Vec<Item>>,
    /// Names that stand for a value, and where.
    uses: HashMap<String, Vec<Range<usize>>>,
}

/// Those of a file, by their names. One that is named in another way too, as in a pattern or in another constant, is
/// left out; the compiler tells of what it computes itself.
pub fn find(file: &syn::File, text: &Text) -> syn::Result<HashMap<String, Item>> {
    let mut visitor = Visitor { text, items: HashMap::new(), uses: HashMap::new() };
    visitor.visit_file(file);
    let mut named = HashMap::new();
    count(text.text.parse()?, &mut named);
    let Visitor { items, mut uses, .. } = visitor;
    let all = items.into_iter().filter_map(|(name, mut items)| {
        let uses = uses.remove(&name).unwrap_or_default();
        // Its own name stands there once more.
        let only = items.len() == 1 && named[&name] == uses.len() + 1;
        only.then(|| (name, Item { uses, ..items.remove(0) }))
    });
    Ok(all.collect())
}

/// How often each name stands there.
fn count(tokens: TokenStream, named: &mut HashMap<String, usize>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => *named.entry(name.to_string()).or_default() += 1,
            TokenTree::Group(group) => count(group.stream(), named),
            _ => {}
        }
    }
}

impl Visitor<'_> {
    fn uses(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => self.add(&name),
                TokenTree::Group(group) => self.uses(group.stream()),
                _ => {}
            }
        }
    }

    fn add(&mut self, name: &proc_macro2::Ident) {
        let range = self.text.parsed(name.span());
        self.uses.entry(name.to_string()).or_default().push(range);
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_const(&mut self, node: &'ast syn::ItemConst) {
        if matches!(node.vis, syn::Visibility::Inherited) {
            let range = |span| self.text.parsed(span);
            let (ty, value) = (range(node.ty.span()), range(node.expr.span()));
            let item = Item { ty, value, uses: Vec::new() };
            self.items.entry(node.ident.to_string()).or_default().push(item);
        }
    }

    fn visit_expr_path(&mut self, node: &'ast syn::ExprPath) {
        if let Some(name) = node.path.get_ident() {
            self.add(name);
        }
        visit::visit_expr_path(self, node);
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        let name = node.path.segments.last().map(|segment| segment.ident.to_string());
        if !NOT_EXPRESSIONS.contains(&name.unwrap_or_default().as_str()) {
            self.uses(node.tokens.clone());
        }
    }

    // What the compiler computes.
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type_array(&mut self, _: &'ast syn::TypeArray) {}
    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }
}

/// Whether a module below that of `file` names it: it sees what is private there.
pub fn is_named_below(file: &Path, name: &str) -> bool {
    let own =
        matches!(file.file_stem().and_then(|stem| stem.to_str()), Some("mod" | "lib" | "main"));
    let folder =
        if own { file.parent().map(Path::to_path_buf) } else { Some(file.with_extension("")) };
    let mut folders: Vec<PathBuf> = folder.into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path != file
                && std::fs::read_to_string(&path).is_ok_and(|text| has(&text, name))
            {
                return true;
            }
        }
    }
    false
}

/// Whether the word stands in the text.
fn has(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !part(c)).any(|other| other == word)
}
