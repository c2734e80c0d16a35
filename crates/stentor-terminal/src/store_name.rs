//! The name of a store on the command line.

use clap::ValueEnum;
use stentor_stage::engines::StageStore;

/// The store of a server
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum StoreName {
    /// The server's file
    Sqlite,
    /// A PostgreSQL server of its own, 15 or newer, from the programs of Debian's package
    Postgres,
}

impl From<StoreName> for StageStore {
    fn from(name: StoreName) -> Self {
        match name {
            StoreName::Sqlite => Self::File,
            StoreName::Postgres => Self::Postgres,
        }
    }
}
