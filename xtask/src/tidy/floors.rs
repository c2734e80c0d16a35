//! Floors: inside a crate, a module may use those below it, and nothing runs back up without a reason.
//!
//! The file of the folder itself (`mod.rs`, or the file beside the folder) is above all of its modules. A module that uses an item of
//! that file runs back up, too; an item that the file only passes on (`pub use`) counts as one of the module that has it.

mod binary;
mod core;
mod http2;
mod lab;
mod program;
mod protocols;
mod server;
mod stage;
mod storage;

use std::collections::{HashMap, HashSet};

use syn::visit::{self, Visit};
use syn::{Item, ItemUse, UseTree};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// The modules of one folder, the lowest floor first. Modules of one floor do not use each other.
pub(crate) struct Floors {
    /// The folder, relative to the workspace root, with a slash at its end.
    pub(crate) folder: &'static str,
    /// The path of its modules inside the crate.
    pub(crate) module: &'static [&'static str],
    /// The modules, floor by floor.
    pub(crate) floors: &'static [&'static [&'static str]],
    /// Permitted uses that run back up, or along a floor: from, to, and the reason.
    pub(crate) back: &'static [(&'static str, &'static str, &'static str)],
    /// Items of the folder's own file that its modules use all the same: which, and why.
    pub(crate) parent: &'static [(&'static str, &'static str)],
}

/// Every crate with checked floors.
const HOUSES: &[Floors] = &[
    core::CORE,
    core::CORE_LEDGER,
    core::CORE_STORE_PORT,
    server::SERVER,
    server::PIPELINE,
    server::PIPELINE_PROVIDER_TABLE,
    server::PIPELINE_SETTLE,
    server::FACE,
    http2::HTTP2,
    http2::HTTP2_CONNECTION,
    http2::HTTP2_HPACK,
    protocols::WIRE,
    protocols::PROVIDERS,
    protocols::EMULATORS,
    protocols::GATEWAY,
    stage::STAGE,
    stage::STAGE_DEMO,
    program::PROGRAM_CLUSTER,
    program::PROGRAM_CLUSTER_DEVICES,
    program::PROGRAM_BENCH,
    program::PROGRAM_BENCH_FACES,
    program::PROGRAM_FACES,
    program::PROGRAM_FEATURES,
    program::PROGRAM_SCALING,
    program::PROGRAM_PUSH_SUBJECT,
    storage::SQLITE_STORE,
    storage::STORAGE,
    storage::STORAGE_SQL,
    storage::SQL_STORE,
    storage::STORAGE_SQLITE,
    storage::STORAGE_POSTGRES,
    storage::POSTGRES_STORE,
    storage::STORAGE_NATS,
    lab::LAB,
    lab::LAB_SUBJECT,
    lab::LAB_RUNNER,
    lab::LAB_ENERGY,
    lab::LAB_PROBES,
    lab::LAB_RESULTS,
    lab::RIG,
    program::PROGRAM,
    binary::BINARY,
    binary::BINARY_COMMANDS,
    binary::BINARY_EMULATE,
    program::PROGRAM_COMMANDS,
    program::PROGRAM_COMMANDS_ENERGY,
    program::PROGRAM_COMMANDS_LINK,
    program::PROGRAM_COMMANDS_BENCH,
    program::PROGRAM_COMMANDS_RUN,
];

/// Reports every use that runs back up.
pub(crate) fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    HOUSES.iter().flat_map(|house| check_with(files, house)).collect()
}

/// Reports every use that runs back up, by given floors.
pub(crate) fn check_with(files: &[RustFile], house: &Floors) -> Vec<TidyFinding> {
    let mut parent = ParentFile::default();
    files.iter().filter(|file| house.has_parent(&file.path)).for_each(|file| parent.read(file, house));
    files.iter().flat_map(|file| check_file(file, house, &parent)).collect()
}

fn check_file(file: &RustFile, house: &Floors, parent: &ParentFile) -> Vec<TidyFinding> {
    let Some(rest) = file.path.strip_prefix(house.folder) else { return Vec::new() };
    let mut own: Vec<String> = rest.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if house.has_parent(&file.path) {
        return Vec::new();
    }
    let from = own[0].clone();
    let Some(floor) = house.floor(&from) else {
        let sentence = format!("`{from}` stands on no floor: add it to a table in xtask/src/tidy/floors");
        return vec![TidyFinding::new(&file.path, 1, sentence)];
    };
    if own.last().is_some_and(|last| last == "mod") {
        own.pop();
    }
    let module = house.module_path().into_iter().chain(own).collect();
    let outside_tests = uses_of(&file.ast, module).into_iter().filter(|(_, line)| !file.is_test_line(*line));
    let wrong = outside_tests.filter_map(|(path, line)| {
        let used = path.strip_prefix(house.module_path().as_slice())?.first()?;
        let sentence = house.wrong_use(&from, floor, used, parent)?;
        Some(TidyFinding::new(&file.path, line, sentence))
    });
    wrong.collect()
}

/// The items of a folder's own file.
#[derive(Default)]
struct ParentFile {
    /// Those that stand in it.
    items: HashSet<String>,
    /// Those that it passes on, with the modules that have them.
    passed_on: HashMap<String, String>,
}

impl ParentFile {
    fn read(&mut self, file: &RustFile, house: &Floors) {
        let module = house.module_path();
        for item in &file.ast.items {
            match item {
                Item::Use(item) => self.read_use(item, &module),
                item => self.items.extend(name_of(item)),
            }
        }
    }

    fn read_use(&mut self, item: &ItemUse, module: &[String]) {
        let mut leaves = Vec::new();
        note_leaves(&item.tree, &[], &mut leaves);
        for (path, name) in leaves {
            // A path that begins with a name begins with a module of the folder, or with another crate.
            let path = absolute(&path, module)
                .map_or(Some(path), |path| path.strip_prefix(module).map(<[String]>::to_vec));
            if let Some([first, _, ..]) = path.as_deref() {
                self.passed_on.insert(name, first.clone());
            }
        }
    }
}

/// Returns the name of an item that a module can use.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Collects the paths of a `use` as they are written, with the names that it gives them.
fn note_leaves(tree: &UseTree, before: &[String], into: &mut Vec<(Vec<String>, String)>) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => note_leaves(&path.tree, &with(&path.ident), into),
        UseTree::Group(group) => group.items.iter().for_each(|item| note_leaves(item, before, into)),
        UseTree::Name(name) => into.push((with(&name.ident), name.ident.to_string())),
        UseTree::Rename(name) => into.push((with(&name.ident), name.rename.to_string())),
        UseTree::Glob(_) => {}
    }
}

/// Returns a path from the crate's root, if it begins in this crate.
fn absolute(parts: &[String], module: &[String]) -> Option<Vec<String>> {
    let mut base = match parts.first().map(String::as_str) {
        Some("crate") => Vec::new(),
        Some("super" | "self") => module.to_vec(),
        _ => return None,
    };
    let mut rest = parts.iter().skip_while(|part| matches!(part.as_str(), "crate" | "self")).peekable();
    while rest.next_if(|part| *part == "super").is_some() {
        base.pop();
    }
    base.extend(rest.cloned());
    Some(base)
}

/// Returns the paths that a file names, from the crate's root, with their lines.
fn uses_of(ast: &syn::File, module: Vec<String>) -> Vec<(Vec<String>, usize)> {
    let mut uses = Uses { module, found: Vec::new() };
    uses.visit_file(ast);
    uses.found
}

impl Floors {
    fn floor(&self, module: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.contains(&module))
    }

    /// Returns why a module of a floor may not use a module, or an item of the file above, if it may not.
    fn wrong_use(&self, from: &str, floor: usize, used: &str, parent: &ParentFile) -> Option<String> {
        let to = match self.floor(used) {
            Some(_) => used,
            None => parent.passed_on.get(used).map_or(used, String::as_str),
        };
        let Some(other) = self.floor(to) else {
            let is_named = self.parent.iter().any(|(item, _)| *item == to);
            return (parent.items.contains(to) && !is_named)
                .then(|| format!("`{from}` uses `{to}` of the file above it: move it to a file below both"));
        };
        let is_named = self.back.iter().any(|(a, b, _)| (*a, *b) == (from, to));
        (to != from && other >= floor && !is_named)
            .then(|| format!("`{from}` uses `{to}`, which is not below it: move what both need down"))
    }

    /// Returns whether a file is the folder's own.
    fn has_parent(&self, path: &str) -> bool {
        let beside = path.strip_suffix(".rs").is_some_and(|path| self.folder.strip_suffix('/') == Some(path));
        let inside = path.strip_prefix(self.folder);
        beside || inside.is_some_and(|name| matches!(name, "lib.rs" | "main.rs" | "mod.rs"))
    }

    fn module_path(&self) -> Vec<String> {
        self.module.iter().map(|part| (*part).to_owned()).collect()
    }
}

/// The paths that a file names, from the crate's root, with their lines.
struct Uses {
    /// The module that the file is.
    module: Vec<String>,
    found: Vec<(Vec<String>, usize)>,
}

impl Uses {
    fn note(&mut self, parts: &[String], line: usize) {
        self.found.extend(absolute(parts, &self.module).map(|path| (path, line)));
    }

    fn note_tree(&mut self, tree: &UseTree, before: &[String], line: usize) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.note_tree(&path.tree, &with(&path.ident), line),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.note_tree(item, before, line)),
            UseTree::Name(name) => self.note(&with(&name.ident), line),
            UseTree::Rename(name) => self.note(&with(&name.ident), line),
            UseTree::Glob(_) => self.note(before, line),
        }
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.note_tree(&item.tree, &[], item.use_token.span.start().line);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.note(&parts, line);
        visit::visit_path(self, path);
    }
}
