//! Documentation: functions use the usual verbs, and no documentation is empty of meaning.

use syn::visit::Visit;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// Wrong first words of documentation: a function "Returns", or does something that a precise verb names.
const WRONG_BEGINNINGS: &[&str] = &["Gives", "Tells", "Says"];
/// Documentation without a meaning.
const EMPTY: &[&str] =
    &["Why.", "Which.", "When.", "How.", "Who.", "Where.", "What.", "Whose.", "How many.", "How often."];

/// Reports such documentation in one file.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    let mut docs = Docs { file, findings: Vec::new() };
    docs.visit_file(&file.ast);
    docs.findings
}

struct Docs<'a> {
    file: &'a RustFile,
    findings: Vec<TidyFinding>,
}

impl<'ast> Visit<'ast> for Docs<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let Some((line, text)) = doc(attribute) else { return };
        let first = text.split_whitespace().next().unwrap_or_default();
        if WRONG_BEGINNINGS.contains(&first) {
            let sentence =
                format!("documentation begins with \"{first}\": begin with \"Returns\", or another verb");
            self.findings.push(TidyFinding::new(&self.file.path, line, sentence));
        }
        if EMPTY.contains(&text.as_str()) || is_one_word(&text) {
            let sentence = format!("\"{text}\" documents nothing: describe the item");
            self.findings.push(TidyFinding::new(&self.file.path, line, sentence));
        }
    }
}

/// Returns true if a whole sentence is one word, which repeats the documented name. The last word of a longer sentence may stand in a line
/// of its own.
fn is_one_word(text: &str) -> bool {
    let word = text.strip_suffix('.').unwrap_or_default();
    word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphanumeric)
}

/// Returns the line and the text of a documentation comment.
fn doc(attribute: &Attribute) -> Option<(usize, String)> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value else { return None };
    let line = attribute.pound_token.span.start().line;
    meta.path.is_ident("doc").then(|| (line, text.value().trim().to_owned()))
}
