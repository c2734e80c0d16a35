//! The source of the book: `docs` as its root, and beside it in `project` the other files to which pages link.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;

use crate::tidy::{page_links, page_prose, resolved};
use crate::workspace::Workspace;

/// Files of the book's making, which are not part of it.
const TOOLS: &[&str] = &["docs/book.toml", "docs/mdbook/"];
/// The folder of files from outside `docs`.
const OUTSIDE: &str = "project";

/// Writes configuration and source of the book into a folder.
pub(super) fn stage(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    let tracked = workspace.tracked_files()?;
    let of_docs = tracked.iter().filter(|path| path.starts_with("docs/"));
    let of_docs = of_docs.filter(|path| !TOOLS.iter().any(|tool| path.starts_with(tool)));
    let mut waiting: Vec<String> = of_docs.cloned().collect();
    let mut staged = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        if staged.contains_key(&path) {
            continue;
        }
        let content = std::fs::read(workspace.root.join(&path)).with_context(|| path.clone())?;
        let content = match String::from_utf8(content) {
            Ok(text) if path.ends_with(".md") => {
                waiting.extend(links(&path, &text, &tracked).into_values());
                staged_page(&path, &text, &tracked).into_bytes()
            }
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        staged.insert(path, content);
    }
    for (path, content) in staged {
        write(&folder.join("src").join(place(&path)), &content)?;
    }
    write(&folder.join("book.toml"), &std::fs::read(workspace.root.join("docs/book.toml"))?)
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(path, content).with_context(|| path.display().to_string())
}

/// Returns the place of a file of the project in the book.
pub(super) fn place(path: &str) -> PathBuf {
    path.strip_prefix("docs/").map_or_else(|| Path::new(OUTSIDE).join(path), PathBuf::from)
}

/// Returns the local links of a page with the files to which they lead; for a folder its first page, or else its first file.
fn links(page: &str, text: &str, tracked: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for link in page_prose(page, text).flat_map(|(_, line)| page_links(page, line)) {
        let Some(target) = link.split('#').next().filter(|file| !file.is_empty()) else { continue };
        let Some(target) = resolved(page, target) else { continue };
        if let Some(file) = file_of(&target.to_string_lossy(), tracked) {
            found.insert(link.to_owned(), file);
        }
    }
    found
}

fn file_of(target: &str, tracked: &[String]) -> Option<String> {
    let readme = format!("{target}/README.md");
    let is_there = |path: &str| tracked.iter().any(|file| file == path);
    if is_there(target) {
        return Some(target.to_owned());
    }
    let below = format!("{target}/");
    is_there(&readme)
        .then_some(readme)
        .or_else(|| tracked.iter().find(|file| file.starts_with(&below)).cloned())
}

/// Returns a page with its links as the book's places demand.
pub(super) fn staged_page(page: &str, text: &str, tracked: &[String]) -> String {
    let links = links(page, text, tracked);
    let mut is_prose = vec![false; text.lines().count()];
    page_prose(page, text).for_each(|(number, _)| is_prose[number] = true);
    let mut staged = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        let mut line = line.to_owned();
        if is_prose[number] {
            for (link, file) in &links {
                let anchor = link.find('#').map_or("", |at| &link[at..]);
                let new = format!("]({}{anchor})", relative(&place(page), &place(file)).display());
                line = line.replace(&format!("]({link})"), &new);
            }
        }
        staged.push_str(&line);
        staged.push('\n');
    }
    staged
}

/// Returns the path from a page to a file.
fn relative(page: &Path, file: &Path) -> PathBuf {
    let parts = |path: &Path| {
        path.components().map(|part: Component<'_>| part.as_os_str().to_owned()).collect::<Vec<_>>()
    };
    let (from, to) = (parts(page.parent().unwrap_or(Path::new(""))), parts(file));
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = from.iter().skip(shared).map(|_| PathBuf::from(".."));
    up.chain(to.iter().skip(shared).map(PathBuf::from)).collect()
}
