//! What a device remembers from one run to the next, in one file that only its owner may read.

use std::collections::VecDeque;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use stentor_gateway::web_push::PushKeyPair;

/// Messages that are remembered, so that one that comes again is recognised: more than a server leaves unconfirmed.
const SEEN_MAX_COUNT: usize = 1_024;
const FILE: &str = "device.json";
/// The time for which a device's former identity is kept after the server has said that it does not know it.
const FORMER_LIFE: Duration = Duration::from_secs(30 * 24 * 3_600);
const FORMER_MAX_COUNT: usize = 8;
const FORMER_PREFIX: &str = "former-";

/// What a device proves itself with, and what it has got.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeviceMemory {
    /// Where it connects to.
    pub(crate) server: String,
    /// Its id.
    pub(crate) device: String,
    /// Its address.
    pub(crate) token: String,
    /// Proves that it is itself.
    pub(crate) secret: String,
    /// When it got its token, in seconds since 1970.
    pub(crate) token_since: u64,
    /// What opens the messages that are sealed for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<KeysRecord>,
    /// When the server first said that it does not know the device, in seconds since 1970; 0 where it knows it.
    #[serde(default)]
    pub(crate) refused_since: u64,
    seen: VecDeque<String>,
}

/// The keys of a device, in base64url.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeysRecord {
    private: String,
    auth: String,
    /// Whether the server has confirmed that it seals for them.
    #[serde(rename = "is_told")]
    pub(crate) is_confirmed: bool,
}

impl KeysRecord {
    /// Makes new keys, which the server has not been told of.
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
    /// Starts with what a registration gave.
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

    /// Takes a new token over.
    pub(crate) fn renew(&mut self, joined: Joined, now: u64) {
        (self.token, self.secret, self.token_since) = (joined.token, joined.secret, now);
    }

    /// Reads what a folder remembers; nothing where no device has run yet.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = file(folder);
        match fs::read(&path) {
            Ok(bytes) => {
                let read = serde_json::from_slice(&bytes);
                read.map(Some)
                    .with_context(|| format!("{} cannot be read: remove it to register anew", path.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Keeps it: on disk when this returns, and never half of it.
    pub(crate) fn keep(&self, folder: &Path) -> anyhow::Result<()> {
        write(&file(folder), &serde_json::to_vec(self)?)
    }

    /// Returns whether the server has not known the device for so long that it never will.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.refused_since > 0 && now.saturating_sub(self.refused_since) > FORMER_LIFE.as_secs()
    }

    /// Remembers under another name who the device was. The oldest ones are kept.
    pub(crate) fn keep_former(&self, folder: &Path, now: u64) -> anyhow::Result<()> {
        let name: String =
            self.device.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
        if Self::former(folder, now)?.len() < FORMER_MAX_COUNT {
            write(&folder.join(format!("{FORMER_PREFIX}{name}.json")), &serde_json::to_vec(self)?)?;
        }
        Ok(fs::remove_file(file(folder))?)
    }

    /// Lists who the device was, the oldest first; what is over is removed.
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

    /// Returns whether a message came before.
    pub(crate) fn has_seen(&self, message: &str) -> bool {
        self.seen.iter().any(|seen| seen == message)
    }

    /// Notes a message; the oldest is forgotten.
    pub(crate) fn note_seen(&mut self, message: &str) {
        if self.seen.len() >= SEEN_MAX_COUNT {
            self.seen.pop_front();
        }
        self.seen.push_back(message.to_owned());
    }
}

/// What the server gives a device that registers or renews its token.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Joined {
    pub(crate) device: String,
    pub(crate) token: String,
    pub(crate) secret: String,
}

fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Writes a file whole or not at all; only its owner may read it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let draft = path.with_extension("draft");
    let mut options = fs::OpenOptions::new();
    let mut opened = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    opened.write_all(bytes)?;
    // The bytes before the name: after a power cut the name must not lead to nothing.
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
