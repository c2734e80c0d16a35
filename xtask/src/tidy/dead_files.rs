//! Dead files: every Rust file is reached from a crate root through `mod`.

use std::collections::BTreeSet;

use syn::{Expr, Item, Lit, Meta};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;
use crate::tidy::adapters;
use crate::workspace::Workspace;

/// Reports the files that no target of the workspace reaches.
pub(crate) fn check(workspace: &Workspace, files: &[RustFile]) -> Vec<TidyFinding> {
    let packages = workspace.metadata.workspace_packages();
    let targets = packages.iter().flat_map(|package| &package.targets);
    let roots = targets.map(|target| workspace.relative(target.src_path.as_std_path()));
    let roots = roots.chain(adapters::roots(files));
    unreachable(&roots.collect::<Vec<_>>(), files)
}

/// Reports the files that none of `roots` reaches.
pub(crate) fn unreachable(roots: &[String], files: &[RustFile]) -> Vec<TidyFinding> {
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut waiting: Vec<String> = roots.to_vec();
    while let Some(path) = waiting.pop() {
        let file = files.iter().find(|file| file.path == path);
        if let Some(file) = file.filter(|_| reached.insert(path)) {
            waiting.extend(children(file, roots.contains(&file.path)));
        }
    }
    let dead = files.iter().filter(|file| !reached.contains(&file.path));
    dead.map(|file| TidyFinding::new(&file.path, 1, "no `mod` leads to this file: declare it or delete it"))
        .collect()
}

/// Lists the paths where the modules of a file may live.
fn children(file: &RustFile, is_root: bool) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let home = match name.strip_suffix(".rs") {
        Some(stem) if !is_root && stem != "mod" => format!("{folder}/{stem}"),
        _ => folder.to_owned(),
    };
    let mut paths = Vec::new();
    modules(&file.ast.items, folder, &home, &mut paths);
    paths
}

fn modules(items: &[Item], folder: &str, home: &str, paths: &mut Vec<String>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let named = module.attrs.iter().find_map(path_attribute);
        match (&module.content, named) {
            (Some((_, inner)), _) => modules(inner, folder, &format!("{home}/{}", module.ident), paths),
            (None, Some(path)) => paths.push(normal(&format!("{folder}/{path}"))),
            (None, None) => {
                paths.push(format!("{home}/{}.rs", module.ident));
                paths.push(format!("{home}/{}/mod.rs", module.ident));
            }
        }
    }
}

fn path_attribute(attribute: &syn::Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(literal) if pair.path.is_ident("path") => match &literal.lit {
            Lit::Str(path) => Some(path.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Resolves `.` and `..` in a path.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
