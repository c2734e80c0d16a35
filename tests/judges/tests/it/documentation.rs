//! The documentation in Chromium: mdBook's pages and their search work under the server's content security policy.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use serde_json::json;
use tokio::process::Command;

use crate::browsers::Dialog;
use crate::client::Client;
use crate::gateway_server::GatewayServer;
use crate::room::{Room, browse, here};

/// Waits for the results of the search that the address asks for, then adds a script to the page, which the policy must refuse. Returns the
/// findings, and all that the policy has refused since the page began: reports come in order, so that of the added script is the last.
const LOOK: &str = "const refused = [], pause = () => new Promise((over) => setTimeout(over, 50)); \
    new ReportingObserver((reports) => refused.push(...reports.map((report) => report.body.effectiveDirective)), \
        { types: ['csp-violation'], buffered: true }).observe(); \
    const results = () => [...document.querySelectorAll('#mdbook-searchresults a')].map((link) => link.getAttribute('href')); \
    while (results().length === 0) await pause(); \
    const added = document.createElement('script'); \
    added.textContent = '0'; \
    document.body.append(added); \
    while (refused.length === 0) await pause(); \
    return { found: results().some((link) => link.startsWith('proxies.html')), refused, \
             scripts: document.documentElement.classList.contains('js') };";

/// Returns the folder of the build, in which `xtask` and mdBook are.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(3).unwrap_or(Path::new("")).to_owned()
}

/// Names the missing program for a site, if any.
fn lacking() -> Option<String> {
    let programs = [("debug/xtask", "cargo build -p xtask"), ("mdbook/bin/mdbook", "docs/mdbook/install")];
    let missing = programs.into_iter().find(|(program, _)| !target().join(program).is_file());
    missing.map(|(program, remedy)| format!("{program}: run {remedy}"))
}

/// Builds the site and opens it.
async fn show(room: &Room) -> anyhow::Result<()> {
    let output = Command::new(target().join("debug/xtask")).arg("book").output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let site = target().join("docs/book");
    let server =
        GatewayServer::start(room, reqwest::Client::builder(), |config| config.api.docs_dir = site).await?;
    let mut command = Client::Browsers.command("chromium.py", room.folder());
    let page = format!("{}/docs/index.html?search=nginx", server.url);
    command.arg(room.folder().join("profile")).args([page.as_str(), &server.url, "https://localhost:1"]);
    let mut browser = Dialog::start(command)?;
    ensure!(browser.result().await? == "ready", "another page");
    let seen = browser.run(LOOK).await?;
    ensure!(seen == json!({"found": true, "refused": ["script-src-elem"], "scripts": true}), "{seen}");
    browser.ends().await
}

#[test]
fn chromium_shows_the_documentation_and_its_search_and_the_policy_refuses_none_of_it() {
    let name =
        "documentation::chromium_shows_the_documentation_and_its_search_and_the_policy_refuses_none_of_it";
    match lacking() {
        None => browse(name, "chromium", &[Client::Browsers], async |room| show(&room).await),
        lacking => here(name, (lacking, "book"), async |_| Ok(())),
    }
}
