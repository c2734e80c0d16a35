//! Links: each page that a tracked file names exists, and so does the heading that a link leads to. The list of pages has each page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::finding::TidyFinding;
use crate::workspace::Workspace;

/// Folders of pages; a path that begins with one of them and ends with `.md` names a page of ours.
const PAGE_FOLDERS: &[&str] = &["docs/", "log/"];
/// The list of pages, of which the site is made.
const SUMMARY: &str = "docs/SUMMARY.md";
/// A heading of a page as its link spells it.
type Headings = BTreeSet<String>;

/// Reports links and names of pages that lead nowhere.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Vec<TidyFinding>> {
    let mut texts = BTreeMap::new();
    let mut paths = BTreeSet::new();
    for path in workspace.tracked_files()? {
        if let Ok(text) = std::fs::read_to_string(workspace.root.join(&path)) {
            texts.insert(path.clone(), text);
        }
        paths.extend(Path::new(&path).ancestors().map(Path::to_path_buf));
    }
    let mut found = findings(&texts, &paths);
    found.extend(unlisted(&texts));
    Ok(found)
}

/// Reports the pages that the list of pages leaves out: a reader of the site would not find them.
pub(crate) fn unlisted(texts: &BTreeMap<String, String>) -> Vec<TidyFinding> {
    let summary = texts.get(SUMMARY).map_or("", String::as_str);
    let links = page_prose(SUMMARY, summary).flat_map(|(_, line)| page_links(SUMMARY, line));
    let listed: BTreeSet<PathBuf> = links.filter_map(|link| resolved(SUMMARY, link)).collect();
    let pages = texts.keys().filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    let left_out = pages.filter(|path| *path != SUMMARY && !listed.contains(Path::new(path)));
    left_out.map(|path| TidyFinding::new(path, 1, format!("{SUMMARY} does not list this page"))).collect()
}

/// Checks the texts against the existing files and folders.
pub(crate) fn findings(texts: &BTreeMap<String, String>, paths: &BTreeSet<PathBuf>) -> Vec<TidyFinding> {
    let pages = texts.iter().filter(|(path, _)| path.ends_with(".md"));
    let headings = pages.map(|(path, text)| (PathBuf::from(path), headings(text))).collect();
    let mut findings = Vec::new();
    for (path, text) in texts {
        for (index, line) in page_prose(path, text) {
            let broken = page_links(path, line).filter_map(|link| broken_link(path, link, paths, &headings));
            let unknown = page_names(line).filter(|name| !paths.contains(Path::new(name)));
            let unknown = unknown.map(|name| format!("there is no page {name}: name the one that says it"));
            findings.extend(broken.chain(unknown).map(|text| TidyFinding::new(path, index + 1, text)));
        }
    }
    findings
}

/// Returns the lines of a text with their numbers; for a page without its blocks of code.
pub(crate) fn page_prose<'a>(path: &str, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let is_page = path.ends_with(".md");
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = is_page && line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of a page's links that are files of the project.
pub(crate) fn page_links<'a>(path: &str, line: &'a str) -> impl Iterator<Item = &'a str> {
    let is_page = path.ends_with(".md");
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(move |target| is_page && !target.contains("://") && !target.starts_with("mailto:"))
}

fn broken_link(
    path: &str,
    link: &str,
    paths: &BTreeSet<PathBuf>,
    headings: &BTreeMap<PathBuf, Headings>,
) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { PathBuf::from(path) } else { resolved(path, file)? };
    if !paths.contains(&target) {
        return Some(format!("the link {link} leads to no file"));
    }
    let has_heading = headings.get(&target).is_none_or(|known| known.contains(anchor));
    (!anchor.is_empty() && !has_heading).then(|| format!("the link {link} leads to no heading"))
}

/// Resolves a link relative to its page; `None` if the link leaves the project.
pub(crate) fn resolved(path: &str, file: &str) -> Option<PathBuf> {
    let mut target = Path::new(path).parent()?.to_path_buf();
    for component in Path::new(file).components() {
        match component {
            Component::ParentDir => target.pop().then_some(())?,
            Component::Normal(name) => target.push(name),
            _ => {}
        }
    }
    Some(target)
}

/// Returns the pages that a line names by their paths from the root.
fn page_names(line: &str) -> impl Iterator<Item = &str> {
    let belongs = |letter: char| letter.is_ascii_alphanumeric() || "/._-*".contains(letter);
    let words = line.split(move |letter| !belongs(letter));
    words
        .filter(|word| word.ends_with(".md") && !word.contains('*'))
        .filter(|word| PAGE_FOLDERS.iter().any(|folder| word.starts_with(folder)))
}

/// Returns the anchors of a page's headings, as GitHub makes them.
fn headings(text: &str) -> Headings {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let lines = page_prose(".md", text).filter(|(_, line)| line.starts_with('#'));
    lines
        .map(|(_, line)| {
            let anchor = anchor(line.trim_start_matches('#').trim());
            let times = seen.entry(anchor.clone()).or_default();
            *times += 1;
            if *times == 1 { anchor } else { format!("{anchor}-{}", *times - 1) }
        })
        .collect()
}

fn anchor(heading: &str) -> String {
    let letters = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    letters.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}
