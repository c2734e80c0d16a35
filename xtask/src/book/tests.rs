use std::collections::{BTreeMap, BTreeSet};

use super::page::without_scripts;
use super::site_links::broken;
use super::stage::staged_page;

fn names(files: &[&str]) -> Vec<String> {
    files.iter().map(|file| (*file).to_owned()).collect()
}

#[test]
fn a_link_that_leaves_the_folder_of_pages_leads_to_the_copy_beside_them() {
    let files = names(&[
        "docs/api.md",
        "docs/lab/link.md",
        "README.md",
        "examples/web/README.md",
        "examples/web/a.js",
    ]);
    let page = "See [it](../../README.md#begin), [api](../api.md), [folder](../../examples/web), [out](https://a.example).\n\
                ```\n[no](../api.md)\n```\n";
    let expected = "See [it](../project/README.md#begin), [api](../api.md), [folder](../project/examples/web/README.md), \
                    [out](https://a.example).\n```\n[no](../api.md)\n```\n";
    assert_eq!(staged_page("docs/lab/link.md", page, &files), expected);
    let readme = "[api](docs/api.md) and [link](docs/lab/link.md#x)\n";
    let expected = "[api](../api.md) and [link](../lab/link.md#x)\n";
    assert_eq!(staged_page("README.md", readme, &files), expected);
}

#[test]
fn a_page_keeps_no_script_and_each_script_a_file() {
    let html = "<head><script>let a = 1;</script><script src=\"b.js\"></script></head><script>a();</script>";
    let (page, scripts) = without_scripts(html, "../");
    assert!(!page.contains("<script>") && page.matches("<script src=\"../page-").count() == 2, "{page}");
    assert!(page.contains("<script src=\"b.js\"></script></head>"), "{page}");
    let contents: Vec<&str> = scripts.iter().map(|(_, script)| script.as_str()).collect();
    assert_eq!(contents, ["let a = 1;", "a();"]);
    assert_ne!(scripts[0].0, scripts[1].0);
}

#[test]
fn a_link_to_no_file_and_one_to_no_heading_are_reported() {
    let page = "<a href=\"lab/b.html#there\">b</a> <a href=\"lab/b.html#gone\">b</a> <img src=\"c.svg\"> <a href=\"mailto:a@b\">m</a>";
    let pages = [
        ("a.html", page),
        ("lab/b.html", "<h2 id=\"there\"><a href=\"../a.html\">a</a> <a href=\"#there\">t</a>"),
    ];
    let pages: BTreeMap<String, String> =
        pages.iter().map(|(name, html)| ((*name).to_owned(), (*html).to_owned())).collect();
    let files: BTreeSet<String> = pages.keys().cloned().collect();
    let expected =
        ["a.html: the link c.svg leads to no file", "a.html: the link lab/b.html#gone leads to no heading"];
    assert_eq!(broken(&pages, &files), expected);
}
