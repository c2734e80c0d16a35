//! `cargo xtask tidy`: the house rules as functions from source to findings.

mod adapters;
mod dead_files;
mod environment;
mod floors;
mod glossary;
mod leftovers;
mod links;
mod log_text;
mod outcomes;
mod promises;
mod sizes;
mod text;
mod vendors;
mod walls;

#[cfg(test)]
mod tests;

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;
use crate::workspace::Workspace;

pub(crate) use self::links::{page_links, page_prose, resolved};
pub(crate) use self::promises::PromisedTests;

/// Runs all rules, prints the findings and the sizes, and returns true if there is no finding.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    Ok(check(workspace)?.is_empty())
}

/// Runs all rules, prints the findings and the sizes, and returns the findings.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Vec<TidyFinding>> {
    let (files, mut findings) = parse_all(workspace)?;
    let sizes = sizes::measure(&files);
    findings.extend(walls::check(workspace)?);
    findings.extend(sizes::check(&files, &sizes));
    findings.extend(floors::check(&files));
    findings.extend(files.iter().flat_map(vendors::check));
    findings.extend(files.iter().flat_map(environment::check));
    findings.extend(files.iter().flat_map(leftovers::check));
    findings.extend(files.iter().flat_map(outcomes::check));
    findings.extend(files.iter().flat_map(log_text::check));
    findings.extend(adapters::check(workspace, &files)?);
    findings.extend(dead_files::check(workspace, &files));
    findings.extend(glossary::check(workspace, &files)?);
    findings.extend(promises::check(workspace, &files)?);
    findings.extend(text::check(workspace)?);
    findings.extend(links::check(workspace)?);
    findings.sort();
    report(&findings, &sizes, files.len());
    Ok(findings)
}

fn parse_all(workspace: &Workspace) -> anyhow::Result<(Vec<RustFile>, Vec<TidyFinding>)> {
    let (mut files, mut findings) = (Vec::new(), Vec::new());
    for source in workspace.sources()? {
        match RustFile::parse(&source.package, &source.path, &source.text) {
            Ok(file) => files.push(file),
            Err(finding) => findings.push(finding),
        }
    }
    Ok((files, findings))
}

fn report(findings: &[TidyFinding], sizes: &[sizes::PackageSizes], files: usize) {
    for package in sizes {
        println!("{package}");
    }
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: {files} files, nothing to fix"),
        1 => println!("tidy: {files} files, 1 finding"),
        count => println!("tidy: {files} files, {count} findings"),
    }
}
