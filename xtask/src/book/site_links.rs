//! The links of the built site: each leads to a file, and to an anchor of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::page::{anchors, targets};
use super::{files, pages};
use crate::tidy::resolved;

/// Returns the links that lead nowhere.
pub(super) fn check(site: &Path) -> anyhow::Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    for page in pages(site)? {
        texts.insert(name(site, &page), std::fs::read_to_string(&page)?);
    }
    let names = files(site)?.iter().map(|file| name(site, file)).collect();
    Ok(broken(&texts, &names))
}

fn name(site: &Path, file: &Path) -> String {
    file.strip_prefix(site).unwrap_or(file).to_string_lossy().into_owned()
}

/// Returns the links of pages that lead to no file of the site, or to no anchor of it.
pub(super) fn broken(pages: &BTreeMap<String, String>, files: &BTreeSet<String>) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(name, html)| (name.as_str(), anchors(html))).collect();
    let mut found = Vec::new();
    for (page, html) in pages {
        let local = targets(html).into_iter().filter(|link| !link.contains(':'));
        for link in local {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { Some(page.clone()) } else { target_of(page, file) };
            let Some(target) = target.filter(|target| files.contains(target)) else {
                found.push(format!("{page}: the link {link} leads to no file"));
                continue;
            };
            let is_there = anchors.get(target.as_str()).is_none_or(|known| known.contains(anchor));
            if !anchor.is_empty() && !is_there {
                found.push(format!("{page}: the link {link} leads to no heading"));
            }
        }
    }
    found
}

fn target_of(page: &str, file: &str) -> Option<String> {
    Some(resolved(page, file)?.to_string_lossy().into_owned())
}
