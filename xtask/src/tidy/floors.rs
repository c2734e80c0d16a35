//! Floors: inside a crate, a module may use those below it, and nothing runs back up without a reason.

mod binary;
mod core;
mod http2;
mod lab;
mod program;
mod protocols;
mod server;
mod stage;
mod storage;

use syn::visit::{self, Visit};
use syn::{ItemUse, UseTree};

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
}

/// Every crate with checked floors.
const HOUSES: &[Floors] = &[
    core::CORE,
    core::CORE_LEDGER,
    core::CORE_STORE_PORT,
    server::SERVER,
    server::PIPELINE,
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

/// Reports every use that runs back up in one file.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    HOUSES.iter().flat_map(|house| check_with(file, house)).collect()
}

/// Reports every use that runs back up in one file, by given floors.
pub(crate) fn check_with(file: &RustFile, house: &Floors) -> Vec<TidyFinding> {
    let Some(rest) = file.path.strip_prefix(house.folder) else { return Vec::new() };
    let mut own: Vec<String> = rest.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if own.len() == 1 && matches!(own[0].as_str(), "lib" | "main" | "mod") {
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
    let module = house.module.iter().map(|part| (*part).to_owned()).chain(own).collect();
    let mut uses = Uses { module, found: Vec::new() };
    uses.visit_file(&file.ast);
    let outside_tests = uses.found.iter().filter(|(_, line)| !file.is_test_line(*line));
    let wrong = outside_tests.filter_map(|(path, line)| {
        let to = path.strip_prefix(house.module_path().as_slice())?.first()?;
        let goes_up = *to != from && house.floor(to)? >= floor;
        let is_named = house.back.iter().any(|(a, b, _)| (*a, *b) == (from.as_str(), to.as_str()));
        (goes_up && !is_named).then(|| {
            let sentence = format!("`{from}` uses `{to}`, which is not below it: move the shared part down");
            TidyFinding::new(&file.path, *line, sentence)
        })
    });
    wrong.collect()
}

impl Floors {
    fn floor(&self, module: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.contains(&module))
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
        let mut base = match parts.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("super" | "self") => self.module.clone(),
            _ => return,
        };
        let mut rest = parts.iter().skip_while(|part| matches!(part.as_str(), "crate" | "self")).peekable();
        while rest.next_if(|part| *part == "super").is_some() {
            base.pop();
        }
        base.extend(rest.cloned());
        self.found.push((base, line));
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
