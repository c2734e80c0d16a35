//! Words: one meaning per word, and some words are never ours.

use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, TraitItem, Visibility};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// Words that no name visible outside its module may contain, and what to say instead.
const WRONG_WORDS: &[(&[&str], &str)] = &[
    (&["recipient", "recipients"], "Target, or Device"),
    (&["subscriber", "subscribers"], "User, or Device"),
    (&["broadcast", "broadcasts", "broadcasted", "broadcasting"], "Campaign, or Target::Everyone"),
    (&["blast", "blasts"], "Campaign"),
    (&["graveyard"], "dead letter"),
    (&["enroll", "enrol", "enrolls", "enrolled", "enrollment"], "register"),
    (&["pps"], "a metric with its unit, as accepted_per_second"),
    (&["mock", "mocks", "mocked"], "Emulator, Stub or Sink"),
    (&["sut"], "Subject"),
    (&["uaid"], "Device"),
];

/// Metaphors that no name outside tests may contain, private ones included, and the word of the field.
const METAPHORS: &[(&[&str], &str)] = &[
    (&["crew", "hire", "hired"], "a pool of consumers, spawn"),
    (&["office"], "a supervisor"),
    (&["desk"], "GroupCommitter"),
    (&["shelf"], "a cache"),
    (&["belt"], "Pipeline"),
    (&["board"], "ServerStatus"),
    (&["ground"], "Dependencies"),
    (&["bells", "bell"], "Wakeups"),
    (&["agenda"], "DueIndex"),
    (&["rush", "lull"], "Backlog"),
    (&["setback"], "ClockStep"),
    (&["outlet"], "ProviderHandle"),
    (&["fate"], "an outcome, or a decision"),
    (&["wish", "wishes"], "RetryIntent, or options"),
    (&["door"], "a listener"),
    (&["mishap", "mishaps"], "Interruption"),
    (&["passage"], "CaptureResult"),
    (&["course"], "a timeline, or a state"),
    (&["picked"], "Subset"),
    (&["aside"], "quarantine"),
    (&["converse", "welcome"], "serve_connection, accept"),
    (&["told", "tell", "tells", "telling", "teller"], "describe, report, log, notify, or the thing itself"),
    (&["asking"], "a probe, or authenticate"),
    (&["ahead"], "an offset, a prefetch"),
    (&["forsaken"], "orphaned"),
    (&["gist", "gists"], "an excerpt"),
    (&["leap", "leapt"], "a clock jump"),
    (&["heard"], "received, or authenticated"),
    (&["news"], "an event, or a signal"),
    (&["newcomer", "newcomers"], "JoiningNode"),
    (&["dress", "dressed"], "a style, or framing"),
    (&["blame", "blamed"], "a source, or an attribution"),
];

/// A vendor's own word, allowed inside the folder that speaks the vendor's language.
pub(crate) struct Exemption {
    /// The folder, relative to the workspace root, with a slash at its end.
    pub(crate) folder: &'static str,
    /// The word part.
    pub(crate) word: &'static str,
    /// Why the vendor's word is the right one there.
    #[expect(dead_code, reason = "written for the reader of the list")]
    pub(crate) reason: &'static str,
}

/// Every exemption there is.
const EXEMPTIONS: &[Exemption] = &[];

/// Reports the wrong words in the names of one file.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    check_with(file, EXEMPTIONS)
}

/// Reports the wrong words in the names of one file, with a given list of exemptions.
pub(crate) fn check_with(file: &RustFile, exemptions: &[Exemption]) -> Vec<TidyFinding> {
    let mut names = PublicNames::default();
    names.visit_file(&file.ast);
    let mut defined = DefinedNames::default();
    defined.visit_file(&file.ast);
    let is_product = |name: &&syn::Ident| !file.is_test_line(name.span().start().line);
    let wrong = names.0.iter().filter(is_product).filter_map(|name| wrong_word(file, name, exemptions));
    let metaphors =
        defined.0.iter().filter(is_product).filter_map(|name| found(file, name, METAPHORS, |_| false));
    wrong.chain(metaphors).collect()
}

/// Splits a name in snake, camel or capital case into lower-case words.
pub(crate) fn parts(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut parts = vec![String::new()];
    for (index, letter) in letters.iter().enumerate() {
        let after_lower = index > 0 && letters[index - 1].is_lowercase();
        let before_lower = index > 0 && letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        if *letter == '_' || (letter.is_uppercase() && (after_lower || before_lower)) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| *letter != '_') {
            part.extend(letter.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn wrong_word(file: &RustFile, name: &syn::Ident, exemptions: &[Exemption]) -> Option<TidyFinding> {
    let exempt = |word: &str| {
        exemptions.iter().any(|exemption| exemption.word == word && file.path.starts_with(exemption.folder))
    };
    found(file, name, WRONG_WORDS, exempt)
}

fn found(
    file: &RustFile,
    name: &syn::Ident,
    words: &[(&[&str], &str)],
    exempt: impl Fn(&str) -> bool,
) -> Option<TidyFinding> {
    let text = name.to_string();
    let parts = parts(text.trim_start_matches("r#"));
    let instead_of = |part: &str| words.iter().find(|(wrong, _)| wrong.contains(&part));
    let (part, (_, instead)) =
        parts.iter().find_map(|part| Some((part, instead_of(part)?)).filter(|_| !exempt(part)))?;
    let sentence = format!("`{text}` says \"{part}\", which is not our word: say {instead} (GLOSSARY.md)");
    Some(TidyFinding::new(&file.path, name.span().start().line, sentence))
}

/// The names of what a file defines, private or not: types, functions, modules, constants, fields.
#[derive(Default)]
struct DefinedNames(Vec<syn::Ident>);

impl<'ast> Visit<'ast> for DefinedNames {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Struct(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Mod(item) => Some(&item.ident),
            Item::Const(item) => Some(&item.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.0.extend(name.cloned());
        visit::visit_item(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.push(signature.ident.clone());
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.0.extend(field.ident.clone());
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.0.push(variant.ident.clone());
        visit::visit_variant(self, variant);
    }
}

/// The names that can be seen from outside their module.
#[derive(Default)]
struct PublicNames(Vec<syn::Ident>);

impl PublicNames {
    fn add(&mut self, visibility: &Visibility, name: &syn::Ident) {
        if !matches!(visibility, Visibility::Inherited) {
            self.0.push(name.clone());
        }
    }

    fn add_fields(&mut self, fields: &syn::Fields) {
        for field in fields {
            if let Some(name) = &field.ident {
                self.add(&field.vis, name);
            }
        }
    }

    fn add_variants(&mut self, item: &syn::ItemEnum) {
        for variant in &item.variants {
            self.add(&item.vis, &variant.ident);
            for name in variant.fields.iter().filter_map(|field| field.ident.as_ref()) {
                self.add(&item.vis, name);
            }
        }
    }

    fn add_trait_items(&mut self, item: &syn::ItemTrait) {
        for inner in &item.items {
            match inner {
                TraitItem::Fn(inner) => self.add(&item.vis, &inner.sig.ident),
                TraitItem::Const(inner) => self.add(&item.vis, &inner.ident),
                TraitItem::Type(inner) => self.add(&item.vis, &inner.ident),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for PublicNames {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Fn(item) => self.add(&item.vis, &item.sig.ident),
            Item::Struct(item) => {
                self.add(&item.vis, &item.ident);
                self.add_fields(&item.fields);
            }
            Item::Enum(item) => {
                self.add(&item.vis, &item.ident);
                self.add_variants(item);
            }
            Item::Trait(item) => {
                self.add(&item.vis, &item.ident);
                self.add_trait_items(item);
            }
            // A module's name is part of every path through it and a file's name, public or not.
            Item::Mod(item) => self.0.push(item.ident.clone()),
            Item::Const(item) => self.add(&item.vis, &item.ident),
            Item::Static(item) => self.add(&item.vis, &item.ident),
            Item::Type(item) => self.add(&item.vis, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add(&item.vis, &item.sig.ident);
        visit::visit_impl_item_fn(self, item);
    }
}
