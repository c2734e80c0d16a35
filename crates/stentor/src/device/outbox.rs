//! The outbox: messages of a device as files. They are written without a connection, sent once there is one, and removed when the server
//! has stored them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::memory;

const FOLDER: &str = "outbox";
/// Most waiting messages: a device without a connection must not fill its disk.
const WAITING_MAX_COUNT: usize = 10_000;

/// A message for the app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outgoing {
    /// Its key: a message sent twice under the same key is the same message.
    pub(crate) message_id: String,
    /// Its content.
    pub(crate) data: Map<String, Value>,
    /// The longest time that it may wait.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) ttl_seconds: Option<u64>,
}

/// Puts a message into the outbox; it is on disk when this returns.
pub(crate) fn put(folder: &Path, message: &Outgoing) -> anyhow::Result<()> {
    let outbox = folder.join(FOLDER);
    if waiting(folder)?.len() >= WAITING_MAX_COUNT {
        anyhow::bail!("{WAITING_MAX_COUNT} messages wait already: run `stentor device run` to send them");
    }
    memory::write(&outbox.join(format!("{}.json", message.message_id)), &serde_json::to_vec(message)?)
}

/// Lists the waiting messages, by name.
pub(crate) fn waiting(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let outbox = folder.join(FOLDER);
    let entries = match fs::read_dir(&outbox) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| outbox.display().to_string()),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    Ok(paths)
}

/// Reads a message. A file that is not a message is set aside, so that it delays nothing else; the function then returns `None`.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<Outgoing>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    match serde_json::from_slice(&bytes) {
        Ok(message) => Ok(Some(message)),
        Err(_) => {
            quarantine(path)?;
            Ok(None)
        }
    }
}

/// Sets aside a message that the server will never accept, so that it is not sent again.
pub(crate) fn quarantine(path: &Path) -> anyhow::Result<()> {
    Ok(fs::rename(path, path.with_extension("refused"))?)
}

/// Removes a message that the server has stored.
pub(crate) fn remove(path: &Path) -> anyhow::Result<()> {
    Ok(fs::remove_file(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_waits_until_it_is_removed_and_what_is_no_message_holds_nothing_up() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(waiting(folder.path()).expect("listed").is_empty());
        let data = Map::from_iter([("t".to_owned(), "21".into())]);
        let message = Outgoing { message_id: "m-1".to_owned(), data, ttl_seconds: Some(5) };
        put(folder.path(), &message).expect("put");
        fs::write(folder.path().join(FOLDER).join("a.json"), "{").expect("written");
        let all = waiting(folder.path()).expect("listed");
        assert_eq!(all.len(), 2);
        assert_eq!(read(&all[0]).expect("set aside"), None);
        assert_eq!(read(&all[1]).expect("read"), Some(message));
        remove(&all[1]).expect("removed");
        assert!(waiting(folder.path()).expect("listed").is_empty());
    }
}
