//! The identity of the node of a data directory.

use std::io;
use std::path::Path;

use rand::Rng;

use crate::private;

/// File in the data directory that holds the node's number; it must be left out of a copy for another node.
pub(crate) const NODE_FILE: &str = "node.id";

/// Reads the number of a data directory, or creates it at first start.
pub(crate) fn node_number(data_dir: &Path) -> io::Result<u64> {
    let path = data_dir.join(NODE_FILE);
    let damaged = || {
        let problem = format!("{} must hold 16 hex digits; remove it to get a new one", path.display());
        io::Error::new(io::ErrorKind::InvalidData, problem)
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => u64::from_str_radix(text.trim(), 16).map_err(|_| damaged()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Err(_) => {
            // Stores keep it as a signed integer.
            let number = rand::rng().next_u64() >> 1;
            private::write(&path, format!("{number:016x}\n").as_bytes())?;
            Ok(number)
        }
    }
}

/// Returns the host name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
