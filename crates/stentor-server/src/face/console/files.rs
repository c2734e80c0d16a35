//! The files of the console, which are part of the program.

use axum::Extension;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;

use crate::face::Api;
use crate::face::http::Routes;
use crate::face::http::held_reply::StaticReply;
use crate::face::http::middleware::no_such_address;
use crate::face::http::refusal::Refusal;

/// A browser may keep a file, and asks each time whether it has changed.
const CACHING: &str = "no-cache";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the console.
#[derive(Debug, Clone, Copy)]
struct ConsoleFile {
    path: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

macro_rules! scripts {
    ($($name:literal)*) => {
        &[$(ConsoleFile {
            path: concat!("/console/", $name, ".js"),
            media_type: SCRIPT,
            content: include_bytes!(concat!("files/", $name, ".js")),
        }),*]
    };
}

const PAGE: ConsoleFile = ConsoleFile {
    path: "/console",
    media_type: "text/html; charset=utf-8",
    content: include_bytes!("files/index.html"),
};

const STYLE: ConsoleFile = ConsoleFile {
    path: "/console/style.css",
    media_type: "text/css; charset=utf-8",
    content: include_bytes!("files/style.css"),
};

const ICON: ConsoleFile = ConsoleFile {
    path: "/console/icon.svg",
    media_type: "image/svg+xml",
    content: include_bytes!("files/icon.svg"),
};

/// The scripts, modules that a browser loads as they are.
const SCRIPTS: &[ConsoleFile] = scripts! {
    "main" "navigation" "api" "elements" "forms" "lists" "bar" "polling" "dialogs"
    "views/overview" "views/apps" "views/campaigns" "views/campaign" "views/delivery" "views/devices" "views/audiences"
    "views/compose" "views/schedules" "views/proposals" "views/credentials" "views/upstream" "views/operator"
};

/// Returns the routes of all files.
pub(super) fn routes() -> Routes<Api> {
    let page = || get(async |headers: HeaderMap| PAGE.answer(&headers));
    Routes::new().route("/console", page()).route("/console/", page()).route("/console/{*file}", get(file))
}

async fn file(uri: Uri, headers: HeaderMap) -> Response {
    let mut files = [STYLE, ICON].into_iter().chain(SCRIPTS.iter().copied());
    match files.find(|file| file.path == uri.path()) {
        Some(file) => file.answer(&headers),
        None => Refusal(no_such_address()).into_response(),
    }
}

impl ConsoleFile {
    fn answer(self, headers: &HeaderMap) -> Response {
        let tag = HeaderValue::try_from(format!("\"{}\"", blake3::hash(self.content).to_hex()));
        // Hexadecimal digits always fit.
        let tag = tag.unwrap_or(HeaderValue::from_static("\"\""));
        let is_known = headers.get(header::IF_NONE_MATCH) == Some(&tag);
        let caching = HeaderValue::from_static(CACHING);
        let about = [(header::ETAG, tag), (header::CACHE_CONTROL, caching)];
        if is_known {
            return (StatusCode::NOT_MODIFIED, about).into_response();
        }
        let (kind, content) = (HeaderValue::from_static(self.media_type), Bytes::from_static(self.content));
        (Extension(StaticReply), about, [(header::CONTENT_TYPE, kind)], content).into_response()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Words that make markup or code of a text, or keep a text in the browser.
    const FORBIDDEN: [&str; 6] =
        ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "localStorage"];

    /// Returns the names of all scripts in a folder of the source.
    fn scripts_in(folder: &str) -> Vec<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/face/console/files").join(folder);
        let files =
            std::fs::read_dir(source).expect("a folder").map(|file| file.expect("a file").file_name());
        let names = files.map(|name| format!("/console/{folder}{}", name.to_string_lossy()));
        names.filter(|name| name.ends_with(".js")).collect()
    }

    #[test]
    fn every_script_is_served_and_none_makes_markup_of_a_text_or_keeps_it() {
        let served: BTreeSet<_> = SCRIPTS.iter().map(|script| script.path.to_owned()).collect();
        let written: BTreeSet<_> = scripts_in("").into_iter().chain(scripts_in("views/")).collect();
        assert_eq!(served, written);
        for script in SCRIPTS {
            let text = str::from_utf8(script.content).expect("UTF-8");
            for word in FORBIDDEN {
                assert!(!text.contains(word), "{word} in {}", script.path);
            }
        }
    }

    #[test]
    fn no_file_names_another_origin() {
        for file in SCRIPTS.iter().chain(&[PAGE, STYLE]) {
            let text = str::from_utf8(file.content).expect("UTF-8");
            assert!(!text.contains("://"), "{}", file.path);
        }
    }
}
