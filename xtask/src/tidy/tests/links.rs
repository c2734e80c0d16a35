//! Links between pages, and names of pages elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::lines;
use crate::tidy::links::{findings, unlisted};

/// Reads a text at a path; `D` stands for the folder of pages, since the rule reads this file too.
fn lines_of(path: &str, text: &str) -> Vec<usize> {
    let spelled = |text: &str| text.replace("D/", "docs/");
    let texts = [(path, text), ("D/other.md", "# One `code` thing\n\n## Twice\n\n## Twice\n")];
    let texts: BTreeMap<_, _> =
        texts.map(|(path, text)| (spelled(path), spelled(text))).into_iter().collect();
    let paths = ["D/page.md", "D/other.md", "README.md"].map(|path| PathBuf::from(spelled(path))).into();
    lines(&findings(&texts, &paths))
}

#[test]
fn a_link_leads_to_a_file_and_a_heading() {
    let text = "[a](other.md#one-code-thing) [b](other.md#twice-1) [c](../README.md) [d](#here)\n# Here\n";
    assert_eq!(lines_of("D/page.md", text), [0; 0]);
    for wrong in ["[a](none.md)", "[a](other.md#three)", "[a](#there)", "[a](other.md#twice-2)"] {
        assert_eq!(lines_of("D/page.md", wrong), [1], "{wrong}");
    }
}

#[test]
fn links_of_others_and_code_are_left_alone() {
    let text = "[a](https://example.com/x#y) [b](../../issues)\n```md\n[c](none.md)\n```\n";
    assert_eq!(lines_of("D/page.md", text), [0; 0]);
}

#[test]
fn a_page_that_code_names_is_there() {
    assert_eq!(lines_of("src/a.rs", "// D/other.md, D/migrate-*.md, a[i](b)"), [0; 0]);
    assert_eq!(lines_of("src/a.rs", "\n// see D/none.md"), [2]);
}

#[test]
fn a_page_that_the_list_of_pages_leaves_out_is_a_finding() {
    let page = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let summary = "- [API](api.md)\n  - [Link](lab/link.md)\n- [Stentor](../README.md)\n";
    let pages = [page("docs/SUMMARY.md", summary), page("docs/api.md", ""), page("docs/lab/link.md", "")];
    assert_eq!(unlisted(&pages.clone().into()), []);
    let more = pages.into_iter().chain([page("docs/lab/bench.md", ""), page("README.md", "")]);
    let found: Vec<String> = unlisted(&more.collect()).iter().map(ToString::to_string).collect();
    assert!(found.len() == 1 && found[0].starts_with("docs/lab/bench.md:1"), "{found:?}");
}
