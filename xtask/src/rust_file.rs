//! A Rust file for the rules: its text, its syntax tree, and its test lines.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::TidyFinding;

/// A parsed Rust file of one package.
pub(crate) struct RustFile {
    /// The name of the package that owns the file.
    pub(crate) package: String,
    /// The path relative to the workspace root, with forward slashes.
    pub(crate) path: String,
    /// The text as it is on disk.
    pub(crate) text: String,
    /// The syntax tree.
    pub(crate) ast: syn::File,
    /// All identifiers and punctuation marks in order, macro arguments included, delimiters and literals left out.
    pub(crate) tokens: Vec<SourceToken>,
    tests: TestLines,
}

/// One identifier or punctuation mark and the line it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceToken {
    /// The identifier, or a single punctuation character.
    pub(crate) word: String,
    /// The line, counted from one.
    pub(crate) line: usize,
}

impl RustFile {
    /// Parses `text`; a file that does not parse is itself a finding.
    pub(crate) fn parse(package: &str, path: &str, text: &str) -> Result<Self, TidyFinding> {
        let fails = |error: syn::Error| {
            let line = error.span().start().line;
            TidyFinding::new(path, line, format!("does not parse ({error}): make it compile first"))
        };
        // Read once for tree and tokens: reading the text again for each rule took a quarter of the time of all of them.
        let stream: TokenStream = text.parse().map_err(|error| fails(syn::Error::from(error)))?;
        let mut tokens = Vec::new();
        flatten(stream.clone(), &mut tokens);
        let ast = syn::parse2(stream).map_err(fails)?;
        let tests = TestLines::of(path, &ast);
        let (package, path, text) = (package.to_owned(), path.to_owned(), text.to_owned());
        Ok(Self { package, path, text, ast, tokens, tests })
    }

    /// Returns true if a line belongs to a test or to a helper of tests.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.tests.whole_file || self.tests.ranges.iter().any(|range| range.contains(&line))
    }
}

fn flatten(stream: TokenStream, into: &mut Vec<SourceToken>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => flatten(group.stream(), into),
            TokenTree::Ident(ident) => into.push(SourceToken { word: ident.to_string(), line }),
            TokenTree::Punct(punct) => into.push(SourceToken { word: punct.as_char().to_string(), line }),
            TokenTree::Literal(_) => {}
        }
    }
}

#[derive(Default)]
struct TestLines {
    whole_file: bool,
    ranges: Vec<RangeInclusive<usize>>,
}

impl TestLines {
    fn of(path: &str, ast: &syn::File) -> Self {
        let mut lines = Self { whole_file: is_test_path(path), ranges: Vec::new() };
        lines.visit_file(ast);
        lines
    }
}

impl<'ast> Visit<'ast> for TestLines {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if attributes(item).iter().any(marks_a_test) {
            let span = item.span();
            self.ranges.push(span.start().line..=span.end().line);
        } else {
            visit::visit_item(self, item);
        }
    }
}

/// Returns true if a path holds nothing but tests: `tests/…`, `…/tests/…`, `…/tests.rs`, `benches/…`.
fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        _ => &[],
    }
}

fn marks_a_test(attribute: &syn::Attribute) -> bool {
    let path = attribute.path();
    if path.segments.last().is_some_and(|segment| segment.ident == "test") {
        return true;
    }
    path.is_ident("cfg")
        && matches!(&attribute.meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
}
