//! Text in the log: foreign text is logged with quotation marks, never as if it were part of the line.
//!
//! The log itself lets no value make another line. This rule keeps values apart from words within one: `%` is for ids, addresses and errors
//! of our own; a text is logged by its name alone, or with `?`. A message is constant: variable parts are in fields.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// The macros of `tracing`.
const MACROS: [&str; 10] = [
    "error",
    "warn",
    "info",
    "debug",
    "trace",
    "error_span",
    "warn_span",
    "info_span",
    "debug_span",
    "trace_span",
];

/// The last names of expressions that may be shown with `%`.
const OURS: [&str; 24] = [
    // Numbers and words of ours.
    "id",
    "request_id",
    "app",
    "device",
    "message",
    "campaign",
    "schedule",
    "chunk",
    "provider",
    "kind",
    "agent",
    "present",
    // Places, as the operator has set them.
    "address",
    "display",
    "shown",
    // Errors of ours, which quote foreign text.
    "error",
    "fault",
    "why",
    "cause",
    "problem",
    "invalid",
    "end",
    // A pair of numbers: the app and the provider of a credential, after a dot.
    "0",
    "1",
];

/// Reports values that are logged without quotation marks, and messages with values in them.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    let mut calls = LogCalls { file, findings: Vec::new() };
    calls.visit_file(&file.ast);
    calls.findings
}

struct LogCalls<'file> {
    file: &'file RustFile,
    findings: Vec<TidyFinding>,
}

impl<'ast> Visit<'ast> for LogCalls<'_> {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let is_log = call.path.segments.first().is_some_and(|first| first.ident == "tracing")
            && call.path.segments.last().is_some_and(|last| MACROS.iter().any(|name| last.ident == name));
        if is_log {
            self.check_call(&call.tokens);
        }
        visit::visit_macro(self, call);
    }
}

impl LogCalls<'_> {
    fn check_call(&mut self, tokens: &TokenStream) {
        for argument in arguments(tokens) {
            let Some(first) = argument.first() else { continue };
            let line = first.span().start().line;
            if self.file.is_test_line(line) {
                continue;
            }
            if let Some(name) = shown_as_it_is(&argument).filter(|name| !OURS.contains(&name.as_str())) {
                let fix = "log a text by its name alone or with `?`, which set marks around it";
                self.report(line, &format!("`%` shows {name} as if it were part of the line: {fix}"));
            }
            if let [TokenTree::Literal(text)] = &argument[..]
                && has_placeholder(&text.to_string())
            {
                self.report(line, "a message of the log has values in it: make fields of them");
            }
        }
    }

    fn report(&mut self, line: usize, sentence: &str) {
        self.findings.push(TidyFinding::new(&self.file.path, line, sentence.to_owned()));
    }
}

/// Takes the arguments of a call apart.
fn arguments(tokens: &TokenStream) -> Vec<Vec<TokenTree>> {
    let mut all = vec![Vec::new()];
    for tree in tokens.clone() {
        match &tree {
            TokenTree::Punct(mark) if mark.as_char() == ',' => all.push(Vec::new()),
            _ => all.last_mut().into_iter().for_each(|argument| argument.push(tree.clone())),
        }
    }
    all
}

/// Returns the last name of a value after `%`.
fn shown_as_it_is(argument: &[TokenTree]) -> Option<String> {
    let is_mark = |tree: &TokenTree, mark| matches!(tree, TokenTree::Punct(punct) if punct.as_char() == mark);
    let place = argument.iter().position(|tree| is_mark(tree, '%'))?;
    // At other places it is a remainder.
    if place > 0 && !is_mark(&argument[place - 1], '=') {
        return None;
    }
    argument[place + 1..].iter().rev().find_map(|tree| match tree {
        TokenTree::Ident(name) => Some(name.to_string()),
        TokenTree::Literal(number) => Some(number.to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) => None,
    })
}

fn has_placeholder(text: &str) -> bool {
    text.starts_with('"') && text.replace("{{", "").contains('{')
}
