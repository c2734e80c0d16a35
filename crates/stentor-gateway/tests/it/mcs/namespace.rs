//! A separate network in which the host names built into a client lead to this machine, so that the client needs no change.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set inside the network; the path of the file that is written at the end of the story.
const INSIDE: &str = "STENTOR_GATEWAY_INSIDE";
/// The host names built into clients of GCM and FCM.
pub(super) const NAMES: &[&str] = &[
    "localhost",
    "android.clients.google.com",
    "mtalk.google.com",
    "fcm.googleapis.com",
    "fcmregistrations.googleapis.com",
    "firebaseinstallations.googleapis.com",
];

/// An unmodified client.
#[derive(Debug, Clone, Copy)]
pub(super) enum ForeignClient {
    FirebaseMessaging,
    PushReceiver,
}

impl ForeignClient {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::FirebaseMessaging => ("firebase-messaging", "requirements.txt"),
            Self::PushReceiver => ("push-receiver", "package-lock.json"),
        }
    }

    /// Returns its directory, as created by `tests/judges/install`.
    fn home(self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join(self.names().0)
    }

    fn sources(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judges/clients").join(self.names().0)
    }

    fn is_installed(self) -> bool {
        let pins = std::fs::read(self.home().join("pins")).ok();
        pins.is_some() && pins == std::fs::read(self.sources().join(self.names().1)).ok()
    }

    /// Returns the command that starts it for an app.
    pub(super) fn command(self, authority: &Path, app: &str, key: &str) -> tokio::process::Command {
        let (home, sources) = (self.home(), self.sources());
        let mut command = match self {
            Self::FirebaseMessaging => {
                let mut python = tokio::process::Command::new(home.join("bin/python"));
                python.arg(sources.join("judge.py"));
                python
            }
            Self::PushReceiver => {
                let mut node = tokio::process::Command::new("node");
                node.arg(sources.join("judge.js")).arg(&home);
                node
            }
        };
        command.arg(app).arg(key);
        for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
            command.env(variable, authority);
        }
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(proxy);
        }
        command
    }
}

/// Runs `story` in such a network, in which the test `name` starts itself again. If a requirement is missing, the test reports a skip, or
/// fails when `STENTOR_TEST_REQUIRE` lists `judges`.
pub(super) fn judged(name: &str, client: ForeignClient, story: impl AsyncFn()) {
    if let Some(marker) = std::env::var_os(INSIDE) {
        let folder = tempfile::tempdir().expect("a folder");
        let hosts = folder.path().join("hosts");
        std::fs::write(&hosts, format!("127.0.0.1 {}\n", NAMES.join(" "))).expect("written");
        assert!(run(Command::new("ip").args(["link", "set", "lo", "up"])));
        assert!(run(Command::new("mount").arg("--bind").arg(&hosts).arg("/etc/hosts")));
        tokio::runtime::Runtime::new().expect("a runtime").block_on(story());
        return std::fs::write(marker, "told").expect("the marker is written");
    }
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root || !client.is_installed() || !run(Command::new("unshare").args(["--net", "--mount", "true"]))
    {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word.trim() == "judges"), "{client:?} cannot judge here");
        writeln!(std::io::stderr(), "skipped: {name}: root, namespaces, and tests/judges/install")
            .expect("said");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let marker = folder.path().join("told");
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]).arg(std::env::current_exe().expect("this program"));
    assert!(run(command.args(["--exact", name, "--nocapture"]).env(INSIDE, &marker)));
    assert!(marker.exists(), "no test has this name, so nothing was judged");
}

fn run(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
