//! The HTML of mdBook's pages, as far as the site needs it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use anyhow::Context;

const SCRIPT: &str = "<script>";
const SCRIPT_END: &str = "</script>";

/// Moves the scripts within a page into files beside the site's other scripts: a content security policy that forbids scripts in pages
/// then lets them run.
pub(super) fn move_scripts_out(site: &Path, page: &Path) -> anyhow::Result<()> {
    let html = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let depth = page.strip_prefix(site)?.components().count() - 1;
    let (html, scripts) = without_scripts(&html, &"../".repeat(depth));
    for (name, script) in scripts {
        std::fs::write(site.join(&name), script).with_context(|| name.clone())?;
    }
    std::fs::write(page, html).with_context(|| page.display().to_string())
}

/// Returns a page without scripts in it, and the scripts with the names of their files.
pub(super) fn without_scripts(html: &str, to_root: &str) -> (String, Vec<(String, String)>) {
    let (mut page, mut scripts, mut rest) = (String::new(), Vec::new(), html);
    while let Some((before, after)) = rest.split_once(SCRIPT) {
        let Some((script, after)) = after.split_once(SCRIPT_END) else { break };
        let name = format!("page-{:016x}.js", digest(script));
        page.push_str(&format!("{before}<script src=\"{to_root}{name}\">{SCRIPT_END}"));
        scripts.push((name, script.to_owned()));
        rest = after;
    }
    page.push_str(rest);
    (page, scripts)
}

fn digest(script: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    script.hash(&mut hasher);
    hasher.finish()
}

/// Returns the targets of a page's links, pictures, styles and scripts.
pub(super) fn targets(html: &str) -> BTreeSet<&str> {
    values(html, " href=\"").chain(values(html, " src=\"")).collect()
}

/// Returns the anchors of a page.
pub(super) fn anchors(html: &str) -> BTreeSet<&str> {
    values(html, " id=\"").collect()
}

fn values<'a>(html: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
}
