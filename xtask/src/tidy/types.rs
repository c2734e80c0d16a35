//! Types: each name belongs to one type of the workspace, or stands in a table with the reason why it is shared.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Ident, ItemEnum, ItemStruct, ItemTrait, ItemType};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// Where the table stands.
const TABLE: &str = "xtask/src/tidy/types.rs";

/// A name that more than one type has, with the reason in one sentence.
pub(crate) type SharedName = (&'static str, &'static str);

/// Every name that is shared.
const SHARED_NAMES: &[SharedName] = &[
    ("Announcement", "server: the announcement by multicast DNS, and its place in a build without it."),
    (
        "Content",
        "core: what a push message says; wire: what an exchange of the laboratory carries; neither knows the other.",
    ),
    (
        "Decoder",
        "http2-codec: reads header blocks; emulators: the same with the kinds of headers that they know.",
    ),
    (
        "Done",
        "storage: what a step of an engine returns, with the error of this engine; no file knows two engines.",
    ),
    (
        "ErrorCode",
        "http2-codec: the error code of RFC 9113; server: the code of a refusal, which every API calls so; no code meets both.",
    ),
    ("Field", "http2-codec: a header; emulators: the same with the kinds of headers that they know."),
    (
        "Operation",
        "wire: the operation of WSDL; server: the operation of the contract, which WSDL may describe.",
    ),
    (
        "Record",
        "core: what became of one delivery; server: the fields of a record of the contract, which every format calls so.",
    ),
    ("Service", "wire: the service of WSDL; server: the service layer that replies to the faces."),
];

/// Reports the names that types share without a reason, and the reasons for names that are not shared.
pub(crate) fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    check_with(files, SHARED_NAMES)
}

/// Reports the same with a given table.
pub(crate) fn check_with(files: &[RustFile], shared: &[SharedName]) -> Vec<TidyFinding> {
    let places = places(files);
    let is_shared = |name: &str| places.get(name).is_some_and(|places| places.len() > 1);
    let has_reason = |name: &str| shared.iter().any(|(known, _)| *known == name);
    let without_reason = places.iter().filter(|(name, _)| is_shared(name) && !has_reason(name));
    let without_need = shared.iter().filter(|(name, _)| !is_shared(name));
    let doubles = without_reason.flat_map(|(name, places)| doubles(name, places));
    doubles.chain(without_need.map(|(name, _)| needless(name))).collect()
}

/// A file and a line in it.
type SourcePlace<'a> = (&'a str, usize);

/// Returns where each name of a type is defined, tests left out.
fn places(files: &[RustFile]) -> BTreeMap<String, Vec<SourcePlace<'_>>> {
    let mut places: BTreeMap<String, Vec<SourcePlace<'_>>> = BTreeMap::new();
    for file in files {
        let mut names = TypeNames::default();
        names.visit_file(&file.ast);
        for (name, line) in names.0.into_iter().filter(|(_, line)| !file.is_test_line(*line)) {
            places.entry(name).or_default().push((&file.path, line));
        }
    }
    places
}

/// Reports each definition of a name but the first.
fn doubles(name: &str, places: &[SourcePlace<'_>]) -> Vec<TidyFinding> {
    let (first, others) = places.split_first().expect("a name has a place");
    let sentence = format!(
        "`{name}` is the name of a type in {}:{} already: rename one, or give the reason in {TABLE}",
        first.0, first.1
    );
    others.iter().map(|(file, line)| TidyFinding::new(file, *line, sentence.clone())).collect()
}

fn needless(name: &str) -> TidyFinding {
    let sentence = format!("`{name}` is the name of one type at most: remove its reason");
    TidyFinding::new(TABLE, 1, sentence)
}

/// The structs, enums, traits and aliases of a file, with their lines.
#[derive(Default)]
struct TypeNames(Vec<(String, usize)>);

impl TypeNames {
    fn note(&mut self, name: &Ident) {
        self.0.push((name.to_string(), name.span().start().line));
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.note(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.note(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.note(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.note(&item.ident);
        visit::visit_item_trait(self, item);
    }
}
