//! A room of its own for one client: private network and mount namespaces in which the push services' names
//! lead to this machine, so that a client with built-in addresses needs no change.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::client::Client;

/// Set inside a room; holds the path of the file that is written when the story has ended.
const INSIDE: &str = "STENTOR_JUDGES_INSIDE";

/// The names that clients have built in.
pub(crate) const NAMES: &[&str] = &[
    "localhost",
    "fcm.googleapis.com",
    "gcm.googleapis.com",
    "android.googleapis.com",
    "gcm-http.googleapis.com",
    "oauth2.googleapis.com",
    "www.googleapis.com",
    "iid.googleapis.com",
    "iamcredentials.googleapis.com",
    "api.push.apple.com",
    "api-manage-broadcast.push.apple.com",
    "android.clients.google.com",
    "mtalk.google.com",
    "fcmregistrations.googleapis.com",
    "firebaseinstallations.googleapis.com",
    "push-api.cloud.huawei.com",
    "oauth-login.cloud.huawei.com",
    "login.live.com",
];

/// A prepared namespace and a folder for the story's files.
pub(crate) struct Room {
    folder: TempDir,
}

impl Room {
    /// Returns the folder for the story's files, gone when the story ends.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder().join(name);
        std::fs::write(&path, content).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// Runs `story` inside a room: the test `name` starts itself once more there. If a requirement is missing, the test reports a skip, or
/// fails when `STENTOR_TEST_REQUIRE` lists `judges`.
pub(crate) fn judge(name: &str, client: Client, story: impl AsyncFn(Room) -> anyhow::Result<()>) {
    judge_all(name, &[client], story);
}

/// Does the same with several clients, all of which are required.
pub(crate) fn judge_all(name: &str, clients: &[Client], story: impl AsyncFn(Room) -> anyhow::Result<()>) {
    let verdict = match std::env::var_os(INSIDE) {
        Some(marker) => tell(Path::new(&marker), story),
        None => match missing(clients) {
            Some(what) => skip(name, &what, "judges"),
            None => enter(name),
        },
    };
    if let Err(error) = verdict {
        panic!("{name}: {error:#}");
    }
}

/// Runs `story` with a browser on the machine itself: no namespace is needed. If a requirement is missing, the test reports a skip, or
/// fails when `STENTOR_TEST_REQUIRE` lists `browsers`.
pub(crate) fn browse(
    name: &str,
    program: &str,
    clients: &[Client],
    story: impl AsyncFn(Room) -> anyhow::Result<()>,
) {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    let lacking = clients.iter().find_map(|client| client.missing());
    let lacking = lacking.or((!is_there).then(|| format!("the browser {program}")));
    here(name, (lacking, "browsers"), story);
}

/// Runs `story` on the machine itself. Where something is lacking the test reports a skip, or fails when `STENTOR_TEST_REQUIRE` lists the
/// word.
pub(crate) fn here(
    name: &str,
    (lacking, word): (Option<String>, &str),
    story: impl AsyncFn(Room) -> anyhow::Result<()>,
) {
    let verdict = match lacking {
        Some(what) => skip(name, &what, word),
        None => unprepared(story),
    };
    if let Err(error) = verdict {
        panic!("{name}: {error:#}");
    }
}

fn unprepared(story: impl AsyncFn(Room) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let room = Room { folder: tempfile::tempdir()? };
    tokio::runtime::Runtime::new()?.block_on(story(room))
}

fn tell(marker: &Path, story: impl AsyncFn(Room) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let names = tempfile::tempdir()?;
    furnish(&names.path().join("hosts"))?;
    let room = Room { folder: tempfile::tempdir()? };
    tokio::runtime::Runtime::new()?.block_on(story(room))?;
    std::fs::write(marker, "told").context("the marker cannot be written")
}

fn furnish(hosts: &Path) -> anyhow::Result<()> {
    std::fs::write(hosts, format!("127.0.0.1 {}\n", NAMES.join(" ")))?;
    run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    run(Command::new("mount").arg("--bind").arg(hosts).arg("/etc/hosts"))
}

fn enter(name: &str) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let marker = folder.path().join("told");
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]).arg(std::env::current_exe()?);
    command.args(["--exact", name, "--nocapture"]).env(INSIDE, &marker);
    run(&mut command)?;
    ensure!(marker.exists(), "no test has this name, so nothing was judged");
    Ok(())
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?} ended with {}\n{stdout}{stderr}", output.status);
    Ok(())
}

/// Names the missing requirement of a room with these clients, if any.
fn missing(clients: &[Client]) -> Option<String> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root {
        return Some("root, for namespaces".to_owned());
    }
    let mut probe = Command::new("unshare");
    probe.args(["--net", "--mount", "ip", "link", "set", "lo", "up"]);
    if let Err(error) = run(&mut probe) {
        return Some(format!("namespaces: {error:#}"));
    }
    clients.iter().find_map(|client| client.missing())
}

fn skip(name: &str, what: &str, word: &str) -> anyhow::Result<()> {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    ensure!(
        !required.split(',').any(|listed| listed.trim() == word),
        "missing: {what} (STENTOR_TEST_REQUIRE does not allow to skip the {word})"
    );
    // Written to the stream directly: the output of a passing test is otherwise swallowed.
    writeln!(std::io::stderr(), "skipped: {name}, missing: {what}")?;
    Ok(())
}
