//! The names in a module: what it imports, and what paths stand in its code.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, Lit, Macro, Meta, UseTree};

/// A path as it is written, `crate` and `super` included.
pub type Written = Vec<String>;

/// The names in a module, but not those in its modules.
#[derive(Default)]
pub struct Names {
    /// What is imported: the name that it has here, and its path.
    pub imported: Vec<(String, Written)>,
    /// Modules of which everything is imported.
    pub whole: Vec<Written>,
    /// All other paths.
    pub mentioned: BTreeSet<Written>,
}

/// Whether something is compiled for tests alone.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |meta: &Meta| meta.path().is_ident("test");
    attributes.iter().filter(|one| one.path().is_ident("cfg")).any(|one| {
        let Ok(condition) = one.parse_args::<Meta>() else { return false };
        let parts = || -> Option<Vec<Meta>> {
            let list = condition.require_list().ok().filter(|list| list.path.is_ident("all"))?;
            let comma = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
            Some(list.parse_args_with(comma).ok()?.into_iter().collect())
        };
        is_test(&condition) || parts().is_some_and(|parts| parts.iter().any(is_test))
    })
}

impl Names {
    /// Adds what stands in these items of the module.
    pub fn add(&mut self, items: &[Item]) {
        items.iter().for_each(|item| self.visit_item(item));
    }

    fn import(&mut self, tree: &UseTree, mut before: Written) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before);
            }
            UseTree::Name(name) => {
                // `a::{self}` is `a`.
                if name.ident != "self" {
                    before.push(name.ident.to_string());
                }
                self.imported.extend(before.last().cloned().map(|name| (name, before)));
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    before.push(rename.ident.to_string());
                }
                self.imported.push((rename.rename.to_string(), before));
            }
            UseTree::Glob(_) => self.whole.push(before),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before.clone()));
            }
        }
    }

    /// The paths in what a macro is given: names with `::` between them.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Written::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.mention(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            self.mention(std::mem::take(&mut path));
            colons = 0;
        }
        self.mention(path);
    }

    fn mention(&mut self, path: Written) {
        if path.len() > 1 {
            self.mentioned.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        // A module's own items are added to that module.
        if !matches!(item, Item::Mod(_)) && !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, Written::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.mention(path.segments.iter().map(|one| one.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }

    /// `#[serde(with = "crate::hex")]`.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Meta::List(list) = &attribute.meta else { return };
        for token in list.tokens.clone() {
            let TokenTree::Literal(literal) = token else { continue };
            if let Lit::Str(text) = Lit::new(literal)
                && let Ok(path) = text.parse::<syn::Path>()
            {
                self.visit_path(&path);
            }
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
