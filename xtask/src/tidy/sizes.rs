//! Sizes: functions and files stay short enough to be read at once, and the typical function stays small.

use std::collections::BTreeMap;
use std::fmt;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// The longest body of a function without a written reason, in lines of code.
const FUNCTION_LINES_MAX: usize = 70;
/// The longest file, in lines of any kind.
const FILE_LINES_MAX: usize = 500;
/// The longest median body of a package's functions, in lines of code.
const MEDIAN_LINES_MAX: usize = 10;
/// The longest 90th percentile of a package's functions, in lines of code.
const P90_LINES_MAX: usize = 35;
/// Below this many functions a package has no statistics worth judging.
const STATISTICS_FUNCTIONS_MIN: usize = 10;

/// A function's place and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// The function's name.
    pub(crate) name: String,
    /// The line of its name.
    pub(crate) line: usize,
    /// The lines of code in its body: blank lines and comments are free, as clippy counts them.
    pub(crate) code_lines: usize,
    /// True when the function carries an `#[expect(clippy::too_many_lines, reason = "…")]`.
    pub(crate) excused: bool,
}

/// The sizes of one package's functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageSizes {
    package: String,
    /// The lengths of all functions outside tests, sorted.
    product: Vec<usize>,
    /// The lengths of test functions, sorted: reported, but not limited by statistics, since a test is read once from top to bottom.
    tests: Vec<usize>,
}

impl PackageSizes {
    fn new(package: &str) -> Self {
        Self { package: package.to_owned(), product: Vec::new(), tests: Vec::new() }
    }
}

impl fmt::Display for PackageSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (product, tests) = (&self.product, &self.tests);
        let (median, p90, longest) =
            (percentile(product, 50), percentile(product, 90), percentile(product, 100));
        write!(
            f,
            "{:<18} {:>4} functions: median {median:>2}, p90 {p90:>2}, longest {longest:>3}",
            self.package,
            product.len()
        )?;
        write!(
            f,
            " | tests {:>4}: median {:>2}, longest {:>3}",
            tests.len(),
            percentile(tests, 50),
            percentile(tests, 100)
        )
    }
}

/// Collects the function lengths of each package.
pub(crate) fn measure(files: &[RustFile]) -> Vec<PackageSizes> {
    let mut packages: BTreeMap<&str, PackageSizes> = BTreeMap::new();
    for file in files {
        let sizes = packages.entry(&file.package).or_insert_with(|| PackageSizes::new(&file.package));
        for function in functions(file) {
            let lengths =
                if file.is_test_line(function.line) { &mut sizes.tests } else { &mut sizes.product };
            lengths.push(function.code_lines);
        }
    }
    packages.into_values().map(sorted).collect()
}

/// Reports long functions, long files, and packages with a typical function that is too long.
pub(crate) fn check(files: &[RustFile], sizes: &[PackageSizes]) -> Vec<TidyFinding> {
    let mut findings: Vec<TidyFinding> = files.iter().flat_map(check_file).collect();
    findings.extend(sizes.iter().flat_map(check_package));
    findings
}

/// Lists the functions of a file that have a body, tests included.
pub(crate) fn functions(file: &RustFile) -> Vec<Function> {
    let mut collector = Collector { code: code_lines(&file.text), functions: Vec::new() };
    collector.visit_file(&file.ast);
    collector.functions
}

/// Reports long functions and the length of one file.
pub(crate) fn check_file(file: &RustFile) -> Vec<TidyFinding> {
    let long = functions(file)
        .into_iter()
        .filter(|function| function.code_lines > FUNCTION_LINES_MAX && !function.excused);
    let mut findings: Vec<TidyFinding> = long
        .map(|function| {
            let sentence = format!(
                "fn {} has {} lines of code, more than {FUNCTION_LINES_MAX}: split it, or say why not with \
                 #[expect(clippy::too_many_lines, reason = \"…\")]",
                function.name, function.code_lines
            );
            TidyFinding::new(&file.path, function.line, sentence)
        })
        .collect();
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        let sentence = format!(
            "the file has {lines} lines, more than {FILE_LINES_MAX}: give one of its concepts a file of its own"
        );
        findings.push(TidyFinding::new(&file.path, lines, sentence));
    }
    findings
}

/// Reports a package with a typical function that is too long.
pub(crate) fn check_package(sizes: &PackageSizes) -> Vec<TidyFinding> {
    if sizes.product.len() < STATISTICS_FUNCTIONS_MIN {
        return Vec::new();
    }
    let limits = [("median", 50, MEDIAN_LINES_MAX), ("90th percentile", 90, P90_LINES_MAX)];
    let broken = limits.into_iter().filter(|(_, percent, max)| percentile(&sizes.product, *percent) > *max);
    broken
        .map(|(name, percent, max)| {
            let lines = percentile(&sizes.product, percent);
            let sentence = format!(
                "the {name} of {}'s functions is {lines} lines, more than {max}: split the longest",
                sizes.package
            );
            TidyFinding::new("Cargo.toml", 1, sentence)
        })
        .collect()
}

fn sorted(mut sizes: PackageSizes) -> PackageSizes {
    sizes.product.sort_unstable();
    sizes.tests.sort_unstable();
    sizes
}

/// Returns the nearest-rank percentile of sorted lengths; 0 when there are none.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Returns for each line true if it holds code, and false if it is blank or a comment.
fn code_lines(text: &str) -> Vec<bool> {
    let mut in_comment = false;
    text.lines()
        .map(|line| {
            let line = line.trim();
            let opens = line.starts_with("/*");
            let comment = in_comment || opens || line.starts_with("//");
            in_comment = (in_comment || opens) && !line.contains("*/");
            !line.is_empty() && !comment
        })
        .collect()
}

struct Collector {
    code: Vec<bool>,
    functions: Vec<Function>,
}

impl Collector {
    fn add(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature, body: &syn::Block) {
        let span = body.span();
        let (open, close) = (span.start().line, span.end().line);
        // The lines of the two braces are not the body's; `{ x }` on one line is one line of code.
        let inside = self.code.get(open..close.saturating_sub(1)).unwrap_or_default();
        let code_lines = if open == close { 1 } else { inside.iter().filter(|code| **code).count() };
        self.functions.push(Function {
            name: signature.ident.to_string(),
            line: signature.ident.span().start().line,
            code_lines,
            excused: attributes.iter().any(excuses_length),
        });
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.attrs, &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.attrs, &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.attrs, &item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn excuses_length(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let tokens = list.tokens.to_string();
    list.path.is_ident("expect") && tokens.contains("too_many_lines") && tokens.contains("reason")
}
