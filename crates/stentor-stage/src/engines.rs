//! The engines of a stage's server, and the third-party servers started for them.

use crate::nats::PrivateNats;
use crate::postgres::PrivatePostgres;
use std::ffi::OsString;
use std::str::FromStr;

/// The store of a stage's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StageStore {
    /// In its file.
    #[default]
    File,
    /// In a PostgreSQL server of the stage's own.
    Postgres,
}

impl StageStore {
    /// Returns the engine's name in a configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::File => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// The queue of a stage's server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StageQueue {
    /// In its file.
    #[default]
    File,
    /// In its memory.
    Memory,
    /// In the database of its store.
    Postgres,
    /// In a nats-server of the stage's own.
    Nats,
    /// In a nats-server that is not the stage's own.
    NatsAt(String),
}

impl StageQueue {
    /// Returns the engine's name in a configuration.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::File => "sqlite",
            Self::Memory => "memory",
            Self::Postgres => "postgres",
            Self::Nats | Self::NatsAt(_) => "nats",
        }
    }
}

impl FromStr for StageQueue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => Ok(Self::File),
            "memory" => Ok(Self::Memory),
            "postgres" => Ok(Self::Postgres),
            "nats" => Ok(Self::Nats),
            url if url.starts_with("nats://") || url.starts_with("tls://") => {
                Ok(Self::NatsAt(url.to_owned()))
            }
            _ => {
                Err("it is sqlite, memory, postgres, nats, or nats://HOST:PORT of a server that runs"
                    .to_owned())
            }
        }
    }
}

/// The servers of others that run for a stage; they end with the value.
#[derive(Default)]
pub struct EngineServers {
    postgres: Option<PrivatePostgres>,
    nats: Option<PrivateNats>,
}

/// Processor time of such servers so far, in seconds; `None` for a server that is not the stage's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineSeconds {
    /// All processes of PostgreSQL.
    pub postgres: Option<f64>,
    /// The nats-server.
    pub nats: Option<f64>,
}

impl EngineServers {
    /// Starts the servers that these engines need.
    pub fn start(store: StageStore, queue: &StageQueue) -> anyhow::Result<Self> {
        let postgres = (store == StageStore::Postgres).then(PrivatePostgres::start).transpose()?;
        let nats = (*queue == StageQueue::Nats).then(PrivateNats::start).transpose()?;
        Ok(Self { postgres, nats })
    }

    /// Returns the environment variables that make a server use these engines.
    pub fn environment(&self, queue: &StageQueue) -> Vec<(&'static str, OsString)> {
        let mut environment = vec![("STENTOR__QUEUE__ENGINE", queue.word().into())];
        environment.extend(self.postgres.iter().flat_map(PrivatePostgres::environment));
        let url = match queue {
            StageQueue::NatsAt(url) => Some(url.clone()),
            _ => self.nats.as_ref().map(PrivateNats::url),
        };
        environment.extend(url.map(|url| ("STENTOR__QUEUE__URL", url.into())));
        environment
    }

    /// Returns the size of the database's tables and indexes; `None` if the stage has no database of its own.
    pub fn database_bytes(&self) -> anyhow::Result<Option<u64>> {
        self.postgres.as_ref().map(PrivatePostgres::bytes).transpose()
    }

    /// Counts the rows of the database; `None` if the stage has no database of its own.
    pub fn database_rows(&self) -> anyhow::Result<Option<u64>> {
        self.postgres.as_ref().map(PrivatePostgres::rows).transpose()
    }

    /// Returns their usage so far.
    pub fn used(&self) -> EngineSeconds {
        EngineSeconds {
            postgres: self.postgres.as_ref().map(PrivatePostgres::cpu_seconds),
            nats: self.nats.as_ref().map(PrivateNats::cpu_seconds),
        }
    }
}

impl EngineSeconds {
    /// Returns the usage since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        let since = |now: Option<f64>, before: Option<f64>| Some(now? - before?);
        Self { postgres: since(self.postgres, before.postgres), nats: since(self.nats, before.nats) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_named_as_in_a_configuration_or_by_its_url() {
        for name in ["sqlite", "memory", "postgres", "nats"] {
            assert_eq!(name.parse::<StageQueue>().map(|queue| queue.word()), Ok(name));
        }
        let at = "nats://127.0.0.1:4222".parse::<StageQueue>().expect("a queue");
        assert_eq!(at, StageQueue::NatsAt("nats://127.0.0.1:4222".to_owned()));
        assert!("kafka".parse::<StageQueue>().is_err());
    }
}
