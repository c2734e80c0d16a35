//! Documentation: what a function returns is said as everybody says it, and nothing is documented by an empty word.

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Lit, Meta, ReturnType, Signature};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// How the documentation of a function that returns something does not begin.
const WRONG_BEGINNINGS: &[&str] = &["Gives", "Tells", "Says"];
/// Words after them with which another thing is said.
const OTHER_MEANINGS: &[&str] =
    &["up", "back", "it", "them", "that", "of", "for", "in", "at", "both", "goodbye", "processes", "nothing"];
/// What documents nothing.
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

impl Docs<'_> {
    fn check_function(&mut self, attributes: &[Attribute], signature: &Signature) {
        let Some((line, text)) = attributes.iter().find_map(doc) else { return };
        let mut words = text.split_whitespace();
        let beginning = words.next().filter(|first| WRONG_BEGINNINGS.contains(first));
        let is_other = words.next().is_some_and(|next| OTHER_MEANINGS.contains(&next.trim_end_matches('.')));
        let returns = !matches!(signature.output, ReturnType::Default);
        if let Some(beginning) = beginning.filter(|_| returns && !is_other) {
            let sentence = format!(
                "the documentation of `{}` begins with \"{beginning}\": say \"Returns\"",
                signature.ident
            );
            self.findings.push(TidyFinding::new(&self.file.path, line, sentence));
        }
    }
}

impl<'ast> Visit<'ast> for Docs<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check_function(&item.attrs, &item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check_function(&item.attrs, &item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.check_function(&item.attrs, &item.sig);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Some((line, text)) = doc(attribute).filter(|(_, text)| EMPTY.contains(&text.as_str())) {
            let sentence = format!("\"{text}\" documents nothing: say what it is");
            self.findings.push(TidyFinding::new(&self.file.path, line, sentence));
        }
    }
}

/// Returns the line and the text of a documentation comment.
fn doc(attribute: &Attribute) -> Option<(usize, String)> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value else { return None };
    let line = attribute.pound_token.span.start().line;
    meta.path.is_ident("doc").then(|| (line, text.value().trim().to_owned()))
}
