//! Puts everything together: build, run, drain.

mod belt;
mod engines;
mod sealing;
mod threads;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use stentor_core::id::IdSource;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::Store;
use tokio::sync::{Semaphore, mpsc};

use crate::api::{Api, FrontLimits, Parts};
use crate::board::Board;
use crate::clock::SystemClock;
use crate::config::{ApiConfig, Config};
use crate::keys::{Pepper, root_key};
use crate::listen::{Door, tls_config};
use crate::pipeline::Failure;
use crate::private;
use crate::service::{Ground, Keyring, Service, ServiceLimits};
pub use belt::PipelineBelt;
pub use engines::Engines;
pub use engines::{Depth, Inspection, inspect, queue_file, store_file};
pub use sealing::{Rotation, Sealing, rotate};

/// File in the data directory that tells the address when the port was chosen by the system.
pub const LISTEN_FILE: &str = "listen.addr";
/// File in the data directory that a running server holds locked.
const LOCK_FILE: &str = "stentor.lock";

/// Why the server cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// A file or folder cannot be used.
    #[error("{what}: {cause}")]
    File {
        /// Which.
        what: String,
        /// Why.
        cause: std::io::Error,
    },
    /// The key that seals credentials is missing or another one.
    #[error("{0}")]
    Sealing(String),
    /// Another server works on the same data directory.
    #[error("{0} is in use by another server: stop it first, or set another data_dir")]
    InUse(String),
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {cause}; set api.listen to a free address")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// The certificate or key cannot be used.
    #[error("TLS cannot be used: {0}")]
    Tls(String),
    /// A part of the pipeline failed while the server ran: it must be started again.
    #[error("the {part} failed ({cause}): start the server again, it goes on where it was")]
    Part {
        /// Which.
        part: String,
        /// How.
        cause: String,
    },
    /// Store or queue cannot be used.
    #[error("{what} cannot be opened: {cause}")]
    Engine {
        /// Which.
        what: &'static str,
        /// Why.
        cause: String,
    },
}

/// A server that is built and not yet serving.
pub struct App {
    door: Door,
    address: SocketAddr,
    api: Api,
    service: Arc<Service>,
    belt: Arc<PipelineBelt>,
    drain_timeout: Duration,
    /// Held while the server lives, so that no second one touches the same files.
    _lock: std::fs::File,
}

impl App {
    /// Opens store and queue, binds the address, recovers what a crash left and starts the pipeline.
    pub async fn build(config: Config) -> Result<Self, AppError> {
        Self::build_with(config, Arc::new(SystemClock)).await
    }

    /// Builds a server that reads its time from the given clock.
    pub async fn build_with(config: Config, clock: Arc<dyn Clock>) -> Result<Self, AppError> {
        let lock = prepare_folder(&config.data_dir)?;
        let engines = Engines::open(&config)?;
        Self::assemble(config, clock, engines, lock).await
    }

    /// Builds a server over engines that are open already, whatever the configuration says about them.
    pub async fn build_over(
        config: Config,
        clock: Arc<dyn Clock>,
        engines: Engines,
    ) -> Result<Self, AppError> {
        let lock = prepare_folder(&config.data_dir)?;
        Self::assemble(config, clock, engines, lock).await
    }

    async fn assemble(
        config: Config,
        clock: Arc<dyn Clock>,
        Engines { store, queue }: Engines,
        lock: std::fs::File,
    ) -> Result<Self, AppError> {
        let keyring = keyring(&config)?;
        // Before the pipeline: a server that cannot listen must not have leased anything.
        let door = open_door(&config.api).await?;
        let ids = Arc::new(IdSource::after(last_id(store.as_ref()).await?));
        let ground =
            engines::Ground { store: store.clone(), queue: queue.clone(), clock: clock.clone(), ids };
        let belt = Arc::new(PipelineBelt::start(&ground, &config).await?);
        let service = Arc::new(open_service(&config, &ground, keyring, belt.clone()).await?);
        let address = tell_address(&door, &config)?;
        let drain_timeout = config.shutdown.drain_timeout();
        let parts_of = config.api.clone();
        let board = Board::new(store, queue, clock, belt.clone(), config);
        let api = Api::new(parts(&parts_of, service.clone(), Arc::new(board)));
        Ok(Self { door, address, api, service, belt, drain_timeout, _lock: lock })
    }

    /// Gives the address that is listened on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then drains within the configured time; each `reload` looks at the credentials again.
    ///
    /// Ends with [`AppError::Part`] when a part of the pipeline fails: what was in flight is settled as far as it can be,
    /// meanwhile the server answers and says that it is not ready.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send,
        reload: mpsc::Receiver<()>,
    ) -> Result<(), AppError> {
        let Self { door, address, api, service, belt, drain_timeout, _lock } = self;
        tracing::info!(%address, "serving");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let server = door.serve(api.router(), async {
            let _dropped_means_stop = stopped.await;
        });
        tokio::pin!(server);
        tokio::select! {
            () = &mut server => {}
            () = shutdown => {}
            () = reload_credentials(&service, &belt, reload) => {}
            _ = belt.failed() => tokio::select! {
                () = &mut server => {}
                () = belt.drain(drain_timeout) => {}
            },
        }
        tracing::info!(seconds = drain_timeout.as_secs(), "draining");
        drop(stop);
        let deadline = Instant::now() + drain_timeout;
        let pipeline = belt.drain(drain_timeout);
        let both = async { tokio::join!(server, pipeline) };
        if tokio::time::timeout_at(deadline.into(), both).await.is_err() {
            tracing::warn!("the time to drain is over; what is left is recovered at the next start");
        }
        tracing::info!("stopped");
        match belt.failures().into_iter().next() {
            Some(Failure { part, cause }) => Err(AppError::Part { part, cause }),
            None => Ok(()),
        }
    }
}

/// Looks at the credentials again at each signal; never ends, so that a closed channel stops nothing.
async fn reload_credentials(service: &Service, belt: &PipelineBelt, mut reload: mpsc::Receiver<()>) {
    while reload.recv().await.is_some() {
        belt.reload().await;
        match service.reload_credentials().await {
            Ok(count) => tracing::info!(count, "credentials looked at again"),
            Err(problem) => tracing::warn!(%problem, "credentials could not be looked at again"),
        }
    }
    std::future::pending().await
}

fn prepare_folder(data_dir: &Path) -> Result<std::fs::File, AppError> {
    let what = data_dir.display().to_string();
    let wrap = |cause| AppError::File { what: what.clone(), cause };
    private::make_folder(data_dir).map_err(wrap)?;
    let mut options = private::options();
    let lock =
        options.create(true).truncate(false).write(true).open(data_dir.join(LOCK_FILE)).map_err(wrap)?;
    match lock.try_lock() {
        Ok(()) => {
            // An address of an earlier start would lead scripts astray.
            let _usually_there_is_none = std::fs::remove_file(data_dir.join(LISTEN_FILE));
            private::tighten(data_dir);
            Ok(lock)
        }
        Err(std::fs::TryLockError::WouldBlock) => Err(AppError::InUse(what)),
        Err(std::fs::TryLockError::Error(cause)) => Err(wrap(cause)),
    }
}

fn keyring(config: &Config) -> Result<Keyring, AppError> {
    let wrap = |cause| AppError::File { what: "the key files".to_owned(), cause };
    let pepper = Pepper::of(&config.data_dir).map_err(wrap)?;
    let root: SecretString = match config.api.root_key() {
        Some(key) => key.clone(),
        None => root_key(&config.data_dir).map_err(wrap)?,
    };
    Ok(Keyring::new(pepper, root.expose_secret()))
}

async fn last_id(store: &dyn Store) -> Result<u64, AppError> {
    let wrap = |cause: stentor_core::ports::store::StoreError| AppError::Engine {
        what: "the store",
        cause: cause.to_string(),
    };
    store.last_id().await.map_err(wrap)
}

async fn open_service(
    config: &Config,
    ground: &engines::Ground,
    keyring: Keyring,
    belt: Arc<PipelineBelt>,
) -> Result<Service, AppError> {
    let limits = ServiceLimits {
        chunk_max_devices: config.pipeline.chunk_max_devices,
        imports_max_count: config.api.imports_max_count,
        import_batch_max_lines: config.api.import_batch_max_lines,
        audit_max_count: config.api.audit_max_count,
        start_spread: config.pipeline.start_spread(),
    };
    let (store, clock, ids) = (ground.store.clone(), ground.clock.clone(), ground.ids.clone());
    let service = Service::open(Ground { store, clock, ids, belt, keyring, limits }).await;
    service.map_err(|problem| AppError::Engine { what: "the store", cause: problem.to_string() })
}

fn parts(config: &ApiConfig, service: Arc<Service>, board: Arc<Board>) -> Parts {
    let front = FrontLimits {
        places: Arc::new(Semaphore::new(config.requests_max_count.min(Semaphore::MAX_PERMITS))),
        timeout: Duration::from_secs(config.request_timeout_seconds),
    };
    Parts {
        service,
        board,
        front,
        body_max_bytes: config.body_max_bytes,
        import_idle_timeout: Duration::from_secs(config.import_idle_timeout_seconds),
        trusted_proxies: config.trusted_proxies(),
        docs: config.docs,
    }
}

async fn open_door(config: &ApiConfig) -> Result<Door, AppError> {
    let tls = match config.tls_files() {
        Some((cert, key)) => Some(tls_config(cert, key).map_err(AppError::Tls)?),
        None => None,
    };
    let address = config.listen;
    Door::bind(address, tls, config.connections_max_count)
        .await
        .map_err(|cause| AppError::Listen { address, cause })
}

/// Writes a system-chosen address where scripts find it, whole or not at all.
fn tell_address(door: &Door, config: &Config) -> Result<SocketAddr, AppError> {
    let address =
        door.local_addr().map_err(|cause| AppError::Listen { address: config.api.listen, cause })?;
    if config.api.listen.port() == 0 {
        let path = config.data_dir.join(LISTEN_FILE);
        let written = private::write(&path, format!("{address}\n").as_bytes());
        written.map_err(|cause| AppError::File { what: path.display().to_string(), cause })?;
    }
    Ok(address)
}
