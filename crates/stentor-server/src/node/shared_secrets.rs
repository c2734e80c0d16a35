//! Secrets that all servers of an installation share, copied from a configured folder.

use std::io;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};

use super::AppError;
use crate::config::{Config, SEAL_KEY_FILE};
use crate::keys::{PEPPER_FILE, ROOT_KEY_FILE, SERVICE_KEY_FILE};
use crate::private;

/// Files that may be in the folder.
const SHARED: [&str; 4] = [PEPPER_FILE, ROOT_KEY_FILE, SEAL_KEY_FILE, SERVICE_KEY_FILE];

/// Copies the folder's secrets into the data directory before any of them is read. Fails if the pepper differs from the one with which the
/// data directory was used.
pub(super) fn adopt(config: &Config) -> Result<(), AppError> {
    let folder = &config.secrets.shared_dir;
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    for name in SHARED {
        let from = folder.join(name);
        let wrap = |cause| AppError::File { what: from.display().to_string(), cause };
        adopt_one(&from, &config.data_dir.join(name)).map_err(wrap)?;
    }
    Ok(())
}

fn adopt_one(from: &Path, to: &Path) -> io::Result<()> {
    let is_pepper = to.ends_with(PEPPER_FILE);
    let Some(given) = read(from)? else {
        let missing =
            "there is none: secrets.shared_dir must have at least key.pepper, as the first server made it";
        return if is_pepper { Err(io::Error::new(io::ErrorKind::NotFound, missing)) } else { Ok(()) };
    };
    let kept = read(to)?;
    if kept.as_ref().is_some_and(|kept| kept.expose_secret() == given.expose_secret()) {
        return Ok(());
    }
    if is_pepper && kept.is_some() {
        let other = "it differs from the pepper in data_dir, with which the API keys and the secrets of the devices were made";
        return Err(io::Error::new(io::ErrorKind::InvalidData, other));
    }
    private::write(to, format!("{}\n", given.expose_secret()).as_bytes())
}

fn read(path: &Path) -> io::Result<Option<SecretString>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned().into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_takes_the_place_of_what_there_is_but_never_of_another_pepper() {
        let folders = [tempfile::tempdir(), tempfile::tempdir()].map(|folder| folder.expect("a folder"));
        let [given, kept] = folders.each_ref().map(|folder| folder.path());
        let adopt = |name: &str| adopt_one(&given.join(name), &kept.join(name));
        let read = |name: &str| std::fs::read_to_string(kept.join(name)).expect("there");
        let why = adopt(PEPPER_FILE).expect_err("a folder without a pepper").to_string();
        assert!(why.contains("key.pepper"), "{why}");
        adopt(ROOT_KEY_FILE).expect("the server makes its own");
        for name in [PEPPER_FILE, ROOT_KEY_FILE] {
            std::fs::write(given.join(name), "one").expect("written");
            adopt(name).expect("taken");
            assert_eq!(read(name), "one\n");
            adopt(name).expect("it has it");
            std::fs::write(given.join(name), "other").expect("written");
        }
        adopt(ROOT_KEY_FILE).expect("a new key");
        assert_eq!(read(ROOT_KEY_FILE), "other\n");
        let why = adopt(PEPPER_FILE).expect_err("another pepper").to_string();
        assert!(why.contains("differs from the pepper in data_dir"), "{why}");
        assert_eq!(read(PEPPER_FILE), "one\n");
    }
}
