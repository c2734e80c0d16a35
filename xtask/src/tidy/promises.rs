//! Promises: every test that the tables of invariants name exists, and every regression has a row.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;
use crate::workspace::Workspace;

/// The page with the tables of invariants.
const PAGE: &str = "docs/invariants.md";
/// Regressions that have a row each, from 1.
const REGRESSIONS: u32 = 23;
/// Smallest number of words of a name that counts as a test's.
const TEST_NAME_MIN_WORDS: usize = 4;

/// The tests that the tables name, and those of the regressions.
pub(crate) struct PromisedTests(Vec<String>);

impl PromisedTests {
    /// Reads the page.
    pub(crate) fn load(workspace: &Workspace) -> anyhow::Result<Self> {
        Ok(Self::on_page(&std::fs::read_to_string(workspace.root.join(PAGE))?))
    }

    /// Reads the rows of a page.
    pub(crate) fn on_page(page: &str) -> Self {
        let named = rows(page).flat_map(|(_, row)| names(row)).map(str::to_owned);
        Self(named.chain((1..=REGRESSIONS).map(|number| format!("r{number}_…"))).collect())
    }

    /// Returns true if the test with this path is one of them.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let name = path.rsplit("::").next().unwrap_or(path);
        self.0.iter().any(|one| one.strip_suffix('…').map_or(one == name, |start| name.starts_with(start)))
    }
}

/// Reports named tests that do not exist.
pub(crate) fn check(workspace: &Workspace, files: &[RustFile]) -> anyhow::Result<Vec<TidyFinding>> {
    let page = std::fs::read_to_string(workspace.root.join(PAGE))?;
    Ok(findings(&page, &functions(files)))
}

/// Checks the rows of a page against the names of all functions.
pub(crate) fn findings(page: &str, known: &BTreeSet<String>) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (index, row) in rows(page) {
        for name in names(row) {
            if !is_there(name, known) {
                let sentence = format!("there is no test `{name}`: name the one that holds this");
                findings.push(TidyFinding::new(PAGE, index + 1, sentence));
            }
        }
    }
    let missing = (1..=REGRESSIONS).filter(|number| !page.contains(&format!("\n| R{number} |")));
    findings.extend(
        missing.map(|number| TidyFinding::new(PAGE, 1, format!("R{number} has no row in the table"))),
    );
    findings
}

/// Returns the rows of all tables with their indexes.
fn rows(page: &str) -> impl Iterator<Item = (usize, &str)> {
    page.lines().enumerate().filter(|(_, line)| line.starts_with('|'))
}

/// Returns the names of tests in a row.
fn names(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2).filter(|name| is_test_name(name))
}

fn is_test_name(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.ends_with("_…") || (name.chars().all(letters) && name.split('_').count() >= TEST_NAME_MIN_WORDS)
}

/// Returns true if a test exists; a name that ends with `…` stands for all names with this beginning.
fn is_there(name: &str, known: &BTreeSet<String>) -> bool {
    match name.strip_suffix('…') {
        Some(beginning) => known.iter().any(|one| one.starts_with(beginning)),
        None => known.contains(name),
    }
}

fn functions(files: &[RustFile]) -> BTreeSet<String> {
    let mut names = Names::default();
    files.iter().for_each(|file| names.visit_file(&file.ast));
    names.0
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.0.insert(item.sig.ident.to_string());
        visit::visit_item_fn(self, item);
    }

    /// Macros make the tests of properties and conformance suites: their names are among the tokens.
    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let text = item.tokens.to_string();
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        self.0.extend(words.filter(|word| is_test_name(word)).map(str::to_owned));
        visit::visit_macro(self, item);
    }
}
