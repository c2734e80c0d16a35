//! `cargo xtask book`: the site of the pages. mdBook renders a staged copy of them; afterwards no page has a script within it, so that a
//! server can forbid such scripts, and every link between pages leads somewhere.

mod page;
mod site_links;
mod stage;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::workspace::Workspace;

/// Where `docs/mdbook/install` puts mdBook, below the target folder.
pub(crate) const MDBOOK: &str = "mdbook/bin/mdbook";
/// The staged pages and, in `book`, the site, below the target folder.
const FOLDER: &str = "docs";

/// Builds the site, prints its folder, and returns true if all links lead somewhere.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    let problems = build(workspace)?;
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(problems.is_empty())
}

/// Builds the site; returns the links that lead nowhere.
pub(crate) fn build(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let target = workspace.metadata.target_directory.as_std_path();
    let (folder, mdbook) = (target.join(FOLDER), target.join(MDBOOK));
    ensure!(mdbook.is_file(), "mdBook is not installed: run docs/mdbook/install");
    clear(&folder)?;
    stage::stage(workspace, &folder)?;
    render(&mdbook, &folder)?;
    let site = folder.join("book");
    for page in pages(&site)? {
        page::move_scripts_out(&site, &page)?;
    }
    compress(&site)?;
    let problems = site_links::check(&site)?;
    println!("book: {} pages in {}", pages(&site)?.len(), workspace.relative(&site));
    Ok(problems)
}

fn clear(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    Ok(())
}

/// Runs mdBook, and prints each of its warnings once.
fn render(mdbook: &Path, folder: &Path) -> anyhow::Result<()> {
    let output =
        Command::new(mdbook).arg("build").arg(folder).output().context("mdBook cannot be started")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "mdBook:\n{printed}");
    let warnings: BTreeSet<&str> = printed.lines().filter(|line| line.contains(" WARN ")).collect();
    warnings.iter().for_each(|warning| println!("mdBook: {}", warning.trim()));
    Ok(())
}

/// Writes the index of the search a second time, compressed: it is as large as all pages together.
fn compress(site: &Path) -> anyhow::Result<()> {
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--keep", "--no-name"]);
    gzip.args(files(site)?.iter().filter(|path| path.to_string_lossy().contains("/searchindex")));
    ensure!(gzip.status().context("gzip cannot be started")?.success(), "gzip failed");
    Ok(())
}

/// Lists the HTML files of the site.
fn pages(site: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = files(site)?;
    found.retain(|path| path.extension().is_some_and(|extension| extension == "html"));
    Ok(found)
}

/// Lists the files below a folder, in order.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
