//! The comments of a Rust file: all text between its tokens.

use anyhow::anyhow;
use proc_macro2::{Span, TokenStream, TokenTree};

/// Lines of comment that follow each other.
pub(super) struct Comment {
    /// Documentation (`///`, `//!`) or a remark (`//`).
    pub(super) is_doc: bool,
    /// The lines without their slashes, with a space between them.
    pub(super) text: String,
}

/// Returns the comments of a file in order.
pub(super) fn comments(text: &str) -> anyhow::Result<Vec<Comment>> {
    let stream: TokenStream = text.parse().map_err(|error| anyhow!("the file does not parse: {error}"))?;
    let mut code = vec![false; text.len()];
    mark(stream, text, &mut code);
    let (mut found, mut start, mut last) = (Vec::<Comment>::new(), 0, None);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let at = line.match_indices("//").map(|(at, _)| at).find(|at| !code[start + at]);
        start += line.len();
        let Some(at) = at else { continue };
        let (kind, words) = split(line[at..].trim_end());
        let continues = line[..at].trim().is_empty() && number > 0 && last == Some((number - 1, kind));
        match found.last_mut().filter(|_| continues) {
            Some(before) => before.text = format!("{} {words}", before.text),
            None => found.push(Comment { is_doc: kind != "//", text: words.to_owned() }),
        }
        last = Some((number, kind));
    }
    Ok(found)
}

/// Divides a line of comment into its slashes and its words.
fn split(line: &str) -> (&'static str, &str) {
    let kinds = if line.starts_with("////") { ["//", "//", "//"] } else { ["///", "//!", "//"] };
    let kind = kinds.into_iter().find(|kind| line.starts_with(kind)).unwrap_or("//");
    (kind, line[kind.len()..].trim_start_matches('/').trim())
}

/// Marks the bytes of tokens. Documentation is a token as well, and not marked.
fn mark(stream: TokenStream, text: &str, code: &mut [bool]) {
    let is_doc = |span: Span| text[span.byte_range()].starts_with("//");
    for tree in stream {
        match tree {
            tree if is_doc(tree.span()) => {}
            TokenTree::Group(group) => {
                code[group.span_open().byte_range()].fill(true);
                code[group.span_close().byte_range()].fill(true);
                mark(group.stream(), text, code);
            }
            leaf => code[leaf.span().byte_range()].fill(true),
        }
    }
}
