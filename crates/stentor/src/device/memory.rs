//! The state that a device keeps between runs, in one file that only its owner may read.

use std::collections::VecDeque;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use stentor_wire::web_push::PushKeyPair;

/// Number of remembered messages, to detect repeats; larger than a server's number of unconfirmed messages.
const SEEN_MAX_COUNT: usize = 1_024;
const FILE: &str = "device.json";
/// Time for which a device's former identity is kept after the server has reported it as unknown.
const FORMER_LIFE: Duration = Duration::from_secs(30 * 24 * 3_600);
const FORMER_MAX_COUNT: usize = 8;
const FORMER_PREFIX: &str = "former-";

/// A device's identity and the messages that it has received.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeviceMemory {
    /// The URL of the server.
    pub(crate) server: String,
    /// Its id.
    pub(crate) device: String,
    /// Its push token.
    pub(crate) token: String,
    /// Its secret, which authenticates it.
    pub(crate) secret: String,
    /// Time at which it got its token, in seconds since 1970.
    pub(crate) token_since: u64,
    /// The keys that decrypt its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<KeysRecord>,
    /// Time at which the server first reported the device as unknown, in seconds since 1970; 0 if the server knows it.
    #[serde(default)]
    pub(crate) refused_since: u64,
    seen: VecDeque<String>,
}

/// The keys of a device, in base64url.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeysRecord {
    private: String,
    auth: String,
    /// True if the server has confirmed that it encrypts for these keys.
    #[serde(rename = "is_told")]
    pub(crate) is_confirmed: bool,
}

impl KeysRecord {
    /// Generates new keys, which the server does not know yet.
    pub(crate) fn generate() -> anyhow::Result<Self> {
        let (private, auth) = PushKeyPair::generate()?.secrets()?;
        Ok(Self { private, auth, is_confirmed: false })
    }

    /// Returns the keys.
    pub(crate) fn pair(&self) -> anyhow::Result<PushKeyPair> {
        PushKeyPair::read(&self.private, &self.auth).context("the keys of this device cannot be read")
    }
}

impl DeviceMemory {
    /// Creates the state from the result of a registration.
    pub(crate) fn new(server: &str, joined: &Joined, now: u64) -> Self {
        let Joined { device, token, secret } = joined.clone();
        Self {
            server: server.to_owned(),
            device,
            token,
            secret,
            token_since: now,
            keys: None,
            refused_since: 0,
            seen: VecDeque::new(),
        }
    }

    /// Applies a renewed token.
    pub(crate) fn renew(&mut self, joined: Joined, now: u64) {
        (self.token, self.secret, self.token_since) = (joined.token, joined.secret, now);
    }

    /// Reads the state from a folder; `None` if no device has run there yet.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = file(folder);
        match fs::read(&path) {
            Ok(bytes) => {
                let read = serde_json::from_slice(&bytes);
                read.map(Some).with_context(|| {
                    format!("{} cannot be read: remove it to register again", path.display())
                })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Writes the state atomically; it is on disk when this returns.
    pub(crate) fn keep(&self, folder: &Path) -> anyhow::Result<()> {
        write(&file(folder), &serde_json::to_vec(self)?)
    }

    /// Returns true if the server has not known the device for too long to know it again.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.refused_since > 0 && now.saturating_sub(self.refused_since) > FORMER_LIFE.as_secs()
    }

    /// Stores the identity as a former one. Beyond the limit the oldest ones are kept.
    pub(crate) fn keep_former(&self, folder: &Path, now: u64) -> anyhow::Result<()> {
        let name: String =
            self.device.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
        if Self::former(folder, now)?.len() < FORMER_MAX_COUNT {
            write(&folder.join(format!("{FORMER_PREFIX}{name}.json")), &serde_json::to_vec(self)?)?;
        }
        Ok(fs::remove_file(file(folder))?)
    }

    /// Lists the former identities, the oldest first; expired ones are removed.
    pub(crate) fn former(folder: &Path, now: u64) -> anyhow::Result<Vec<(PathBuf, Self)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !name.starts_with(FORMER_PREFIX) || !name.ends_with(".json") {
                continue;
            }
            let Ok(memory) = serde_json::from_slice::<Self>(&fs::read(&path)?) else { continue };
            match memory.is_over(now) {
                true => fs::remove_file(path)?,
                false => found.push((path, memory)),
            }
        }
        found.sort_by_key(|(_, memory)| memory.refused_since);
        Ok(found)
    }

    /// Returns true if a message was received before.
    pub(crate) fn has_seen(&self, message: &str) -> bool {
        self.seen.iter().any(|seen| seen == message)
    }

    /// Records a message; the oldest one is dropped.
    pub(crate) fn note_seen(&mut self, message: &str) {
        if self.seen.len() >= SEEN_MAX_COUNT {
            self.seen.pop_front();
        }
        self.seen.push_back(message.to_owned());
    }
}

/// The server's response to a registration or to the renewal of a token.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Joined {
    pub(crate) device: String,
    pub(crate) token: String,
    pub(crate) secret: String,
}

fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Writes a file atomically; only its owner may read it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let draft = path.with_extension("draft");
    let mut options = fs::OpenOptions::new();
    let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    opened.write_all(bytes)?;
    // The content before the name: after a power cut the name must not refer to an empty file.
    opened.sync_all()?;
    fs::rename(&draft, path)?;
    Ok(fs::File::open(folder)?.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> DeviceMemory {
        let text = |text: &str| text.to_owned();
        let joined = Joined { device: text("dev_1"), token: text("t"), secret: text("s") };
        DeviceMemory::new("http://localhost", &joined, 5)
    }

    #[test]
    fn what_was_kept_is_remembered_and_only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        assert!(DeviceMemory::read(folder.path()).expect("read").is_none());
        let mut own = memory();
        own.note_seen("msg_1");
        own.keep(folder.path()).expect("kept");
        let read = DeviceMemory::read(folder.path()).expect("read").expect("there");
        assert!(read.has_seen("msg_1") && !read.has_seen("msg_2"));
        let mode = fs::metadata(file(folder.path())).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn who_the_device_was_is_remembered_for_thirty_days() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut own = memory();
        own.refused_since = 1_000;
        own.keep(folder.path()).expect("kept");
        own.keep_former(folder.path(), 1_000).expect("set aside");
        assert!(DeviceMemory::read(folder.path()).expect("read").is_none());
        let former = |now| DeviceMemory::former(folder.path(), now).expect("listed");
        assert_eq!(former(1_000 + FORMER_LIFE.as_secs())[0].1.token, "t");
        assert!(former(1_001 + FORMER_LIFE.as_secs()).is_empty() && former(1_000).is_empty());
    }

    #[test]
    fn no_more_is_remembered_than_is_needed() {
        let mut own = memory();
        (0..=SEEN_MAX_COUNT).for_each(|number| own.note_seen(&number.to_string()));
        assert!(!own.has_seen("0") && own.has_seen("1"));
        assert_eq!(own.seen.len(), SEEN_MAX_COUNT);
    }
}
