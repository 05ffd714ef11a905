//! Where in a file mutants can be switched, and how.

use crate::items::{self, Item};
use crate::mutant::Genre;
use crate::text::Text;
use std::collections::HashMap;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr};

/// How a mutant is switched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Site {
    /// This expression is chosen among its mutants. Of operators it is the outermost one without parentheses, so that a
    /// change of precedence is as in the text.
    Choice(Range<usize>),
    /// The body returns early, from this byte on.
    Return(usize),
    /// The body, of these bytes, is chosen among other iterators: its own type has no name.
    Iterator(Range<usize>),
    /// A guard at this byte, after the pattern.
    Guard(usize),
    /// The constant of this name is chosen where it is read.
    Item(String),
    /// It is computed while the compiler runs.
    Constant,
    /// No expression: `||` next to a `let` does not build.
    Never,
    /// Alone in a build of its own.
    Alone,
}

/// A `const fn`: its name and what of it is left out to make it a plain one.
#[derive(Clone, Debug)]
pub struct ConstFn {
    pub name: String,
    pub keyword: Range<usize>,
    pub whole: Range<usize>,
}

/// All sites of a file, by what cargo-mutants names: the kind and the first byte.
#[derive(Default)]
pub struct Sites {
    pub sites: HashMap<(Genre, usize), Site>,
    pub const_fns: Vec<ConstFn>,
    pub items: HashMap<String, Item>,
}

struct Visitor<'t> {
    text: &'t Text<'t>,
    found: Sites,
    /// The expression that a nested operator belongs to.
    chain: Option<Range<usize>>,
    constant: bool,
    /// The constant whose value this is.
    item: Option<String>,
}

/// Finds them.
pub fn find(text: &Text) -> syn::Result<Sites> {
    let file = syn::parse_file(text.text)?;
    let found = Sites { items: items::find(&file, text)?, ..Sites::default() };
    let mut visitor = Visitor { text, found, chain: None, constant: false, item: None };
    visitor.visit_file(&file);
    Ok(visitor.found)
}

fn assigns(op: &BinOp) -> bool {
    use BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Whether it is a chain with `let`.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Whether it is `impl Iterator` and no more: cargo-mutants has replacements for no other trait (27.1.0).
fn is_iterator(ty: &syn::Type) -> bool {
    let syn::Type::ImplTrait(ty) = ty else { return false };
    let named = |bound: &syn::TypeParamBound| {
        let syn::TypeParamBound::Trait(bound) = bound else { return None };
        bound.path.segments.last().map(|segment| segment.ident.to_string())
    };
    let names: Vec<String> = ty.bounds.iter().filter_map(named).collect();
    names == ["Iterator"]
}

/// Whether it leaves before its end, beside what closures in it do.
fn leaves(body: &syn::Block) -> bool {
    struct Find(bool);
    impl Visit<'_> for Find {
        fn visit_expr_return(&mut self, _: &syn::ExprReturn) {
            self.0 = true;
        }
        fn visit_expr_try(&mut self, _: &syn::ExprTry) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &syn::ExprClosure) {}
        fn visit_item(&mut self, _: &syn::Item) {}
    }
    let mut find = Find(false);
    find.visit_block(body);
    find.0
}

/// Whether it is `impl …`, or holds one.
fn has_impl(ty: &syn::Type) -> bool {
    struct Find(bool);
    impl Visit<'_> for Find {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut find = Find(false);
    find.visit_type(ty);
    find.0
}

impl Visitor<'_> {
    fn add(&mut self, genre: Genre, at: usize, site: Site) {
        let site = match &self.item {
            Some(item) => Site::Item(item.clone()),
            None if self.constant => Site::Constant,
            None => site,
        };
        self.found.sites.insert((genre, at), site);
    }

    fn range(&self, of: &impl Spanned) -> Range<usize> {
        self.text.parsed(of.span())
    }

    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        let outside = std::mem::replace(&mut self.constant, true);
        visit(self);
        self.constant = outside;
    }

    fn function(&mut self, sig: &syn::Signature, body: &syn::Block, whole: Range<usize>) {
        let (Some(first), Some(last)) = (body.stmts.first(), body.stmts.last()) else { return };
        let (at, end) = (self.range(first).start, self.range(last).end);
        let site = match &sig.output {
            syn::ReturnType::Type(_, ty) if is_iterator(ty) && !leaves(body) => {
                Site::Iterator(at..end)
            }
            // An early return of another type than the rest's, where the type has no name.
            syn::ReturnType::Type(_, ty) if has_impl(ty) => Site::Alone,
            _ => Site::Return(at),
        };
        self.add(Genre::FnValue, at, site);
        if let Some(keyword) = sig.constness {
            let keyword = self.range(&keyword);
            self.found.const_fns.push(ConstFn { name: sig.ident.to_string(), keyword, whole });
        }
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.function(&node.sig, &node.block, self.range(node));
        // A function inside a constant is none itself.
        let outside = (std::mem::replace(&mut self.constant, false), self.item.take());
        visit::visit_item_fn(self, node);
        (self.constant, self.item) = outside;
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.function(&node.sig, &node.block, self.range(node));
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(body) = &node.default {
            self.function(&node.sig, body, self.range(node));
        }
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let own = self.range(node);
        let chain = self.chain.take().unwrap_or(own);
        let lets = has_let(&node.left) || has_let(&node.right);
        let site = if lets { Site::Never } else { Site::Choice(chain.clone()) };
        self.add(Genre::BinaryOperator, self.range(&node.op).start, site);
        for operand in [&node.left, &node.right] {
            let nested = matches!(&**operand, Expr::Binary(inner) if !assigns(&inner.op));
            self.chain = (nested && !lets && !assigns(&node.op)).then(|| chain.clone());
            self.visit_expr(operand);
        }
        self.chain = None;
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        self.add(Genre::UnaryOperator, self.range(&node.op).start, Site::Choice(self.range(node)));
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let rest = |arm: &syn::Arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none();
        let covered = node.arms.iter().any(rest);
        for arm in &node.arms {
            let behind = self.range(&arm.pat).end;
            let site = if covered { Site::Guard(behind) } else { Site::Alone };
            self.add(Genre::MatchArm, self.range(arm).start, site);
        }
        visit::visit_expr_match(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let Some((_, guard)) = &node.guard {
            let range = self.range(&**guard);
            let site = if has_let(guard) { Site::Alone } else { Site::Choice(range.clone()) };
            self.add(Genre::MatchArmGuard, range.start, site);
        }
        visit::visit_arm(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        let range = self.range(node);
        for field in &node.fields {
            self.add(Genre::StructField, self.range(field).start, Site::Choice(range.clone()));
        }
        visit::visit_expr_struct(self, node);
    }

    fn visit_item_const(&mut self, node: &'ast syn::ItemConst) {
        let name = node.ident.to_string();
        let item = self.found.items.contains_key(&name).then_some(name);
        self.constant(|v| {
            v.visit_type(&node.ty);
            let outside = std::mem::replace(&mut v.item, item);
            v.visit_expr(&node.expr);
            v.item = outside;
        });
    }

    fn visit_item_static(&mut self, node: &'ast syn::ItemStatic) {
        self.constant(|v| visit::visit_item_static(v, node));
    }

    fn visit_impl_item_const(&mut self, node: &'ast syn::ImplItemConst) {
        self.constant(|v| visit::visit_impl_item_const(v, node));
    }

    fn visit_trait_item_const(&mut self, node: &'ast syn::TraitItemConst) {
        self.constant(|v| visit::visit_trait_item_const(v, node));
    }

    fn visit_expr_const(&mut self, node: &'ast syn::ExprConst) {
        self.constant(|v| visit::visit_expr_const(v, node));
    }

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
        self.constant(|v| v.visit_expr(&node.len));
    }

    fn visit_type_array(&mut self, node: &'ast syn::TypeArray) {
        self.visit_type(&node.elem);
        self.constant(|v| v.visit_expr(&node.len));
    }

    fn visit_generic_argument(&mut self, node: &'ast syn::GenericArgument) {
        self.constant(|v| visit::visit_generic_argument(v, node));
    }

    fn visit_variant(&mut self, node: &'ast syn::Variant) {
        self.constant(|v| visit::visit_variant(v, node));
    }
}
