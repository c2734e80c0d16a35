//! Leftovers: no temporary code stays.

use syn::visit::{self, Visit};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// Macros that mark unfinished work, each with its fix.
const UNFINISHED: &[(&str, &str)] = &[
    ("todo", "finish it or return an error"),
    ("unimplemented", "finish it or return an error"),
    ("dbg", "use tracing, or remove it"),
];

/// Reports unfinished work and ignored tests in one file.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    let mut findings = unfinished(file);
    let mut ignored = Ignored { file, findings: Vec::new() };
    ignored.visit_file(&file.ast);
    findings.extend(ignored.findings);
    findings
}

fn unfinished(file: &RustFile) -> Vec<TidyFinding> {
    let tokens = &file.tokens;
    let calls = tokens.windows(2).filter(|pair| pair[1].word == "!");
    calls
        .filter_map(|pair| {
            let (name, fix) = UNFINISHED.iter().find(|(name, _)| *name == pair[0].word)?;
            Some(TidyFinding::new(&file.path, pair[0].line, format!("{name}! was left behind: {fix}")))
        })
        .collect()
}

struct Ignored<'file> {
    file: &'file RustFile,
    findings: Vec<TidyFinding>,
}

impl<'ast> Visit<'ast> for Ignored<'_> {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if is_ignore(attribute) {
            let line = attribute.pound_token.spans[0].start().line;
            let sentence = "a test is ignored: mend it, delete it, or let it report a skip that STENTOR_TEST_REQUIRE can forbid";
            self.findings.push(TidyFinding::new(&self.file.path, line, sentence));
        }
        visit::visit_attribute(self, attribute);
    }
}

fn is_ignore(attribute: &syn::Attribute) -> bool {
    let conditional = || match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg_attr") => {
            last_part(&list.tokens.to_string()).starts_with("ignore")
        }
        _ => false,
    };
    attribute.path().is_ident("ignore") || conditional()
}

/// Returns the attribute of a `cfg_attr(condition, attribute)`: the text after the last comma.
fn last_part(tokens: &str) -> &str {
    tokens.rsplit(',').next().unwrap_or_default().trim()
}
