//! A PostgreSQL server of the tests' own: its files lie in a temporary directory, it listens on a socket there and on a port of this
//! machine, and it ends with the process. The system's server is not used.

use std::cell::Cell;
use std::fs::Permissions;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use stentor_storage::postgres::{PostgresAddress, PostgresSettings, PostgresStore};

/// The directory in which Debian installs the programs of each major version.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// The user that the server runs as where we are root: it refuses root.
const USER: &str = "postgres";
const START: Duration = Duration::from_secs(60);

thread_local! {
    static IS_SAID: Cell<bool> = const { Cell::new(false) };
}

/// A running server.
pub(crate) struct PostgresServer {
    folder: PathBuf,
    port: u16,
}

/// Returns the server of this process, which is started at the first call; `None` where no PostgreSQL is installed.
///
/// # Panics
///
/// When `STENTOR_TEST_REQUIRE` names `postgres` and there is none.
pub(crate) fn server() -> Option<&'static PostgresServer> {
    static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
    // On a thread of its own: the driver waits in a way that the threads of a runtime refuse.
    let start = || {
        std::thread::spawn(|| {
            remove_of_others();
            let folder = std::env::temp_dir().join(format!("stentor-postgres-{}", std::process::id()));
            programs().map(|programs| PostgresServer::start(&programs, folder))
        })
        .join()
    };
    let server = SERVER.get_or_init(|| start().expect("the server starts"));
    if server.is_none() {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|one| one == "postgres"), "no PostgreSQL 15 or newer is installed");
        // Each test has a thread of its own, and prints this once for any number of calls.
        if !IS_SAID.replace(true) {
            let _ = writeln!(std::io::stderr(), "skipped: no PostgreSQL 15 or newer in {PROGRAMS}");
        }
    }
    server.as_ref()
}

/// Starts a server for one test, which may change its settings; `None` if no PostgreSQL is installed.
pub(crate) fn own_server(name: &str) -> Option<&'static PostgresServer> {
    let (folder, programs) = (server()?.folder.join(name), programs()?);
    let start = std::thread::spawn(move || PostgresServer::start(&programs, folder));
    Some(Box::leak(Box::new(start.join().expect("the server starts"))))
}

/// Finds the programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(PROGRAMS).ok()?.flatten();
    let version = |path: PathBuf| Some((path.file_name()?.to_str()?.parse::<u32>().ok()?, path));
    let versions = versions.filter_map(|entry| version(entry.path()));
    let newest = versions.filter(|(version, _)| *version >= 15).max()?;
    Some(newest.1.join("bin")).filter(|programs| programs.join("initdb").exists())
}

/// Returns a command that runs as the server's user, and ends with the thread that starts it.
pub(crate) fn as_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--pdeathsig", "INT"]).arg(program);
    command
}

impl PostgresServer {
    fn start(programs: &Path, folder: PathBuf) -> Self {
        std::fs::create_dir_all(&folder).expect("a folder");
        if rustix::process::geteuid().is_root() {
            let id = |flag| {
                let output = Command::new("id").args([flag, USER]).output().expect("id runs").stdout;
                String::from_utf8_lossy(&output).trim().parse().ok()
            };
            chown(&folder, id("-u"), id("-g")).expect("the folder is the server's");
        }
        let data = folder.join("data");
        let made = as_user(&programs.join("initdb"))
            .args([
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
                "--username=postgres",
                "-D",
            ])
            .arg(&data)
            .current_dir("/")
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let (program, socket, port) = (programs.join("postgres"), folder.clone(), free_port());
        // The server is killed when the thread that started it ends: this thread lives as long as the process.
        let life = move || {
            let mut child = as_user(&program)
                .arg("-D")
                .arg(data)
                .arg("-k")
                .arg(socket)
                .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
                .args(["-c", "fsync=off", "-c", "full_page_writes=off"])
                .args(["-c", "max_connections=400", "-c", "autovacuum=off", "-c", "shared_buffers=64MB"])
                .current_dir("/")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the server starts");
            let _ = child.wait();
        };
        std::thread::Builder::new().name("postgres".to_owned()).spawn(life).expect("a thread");
        let server = Self { folder, port };
        let begun = Instant::now();
        while server.connect("postgres").is_err() {
            assert!(begun.elapsed() < START, "the server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.prepare_template();
        server
    }

    /// Creates the template database of all cases.
    fn prepare_template(&self) {
        self.command("CREATE DATABASE template_store");
        drop(
            PostgresStore::open(&self.address("template_store"), &PostgresSettings::default()).expect("made"),
        );
    }

    fn connect(&self, database: &str) -> Result<Client, postgres::Error> {
        Client::connect(&self.url(database), NoTls)
    }

    /// Returns the URL of a database.
    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    /// Returns the port of this machine on which it listens.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Installs a certificate and its key, in PEM, and has it speak TLS from now on.
    pub(crate) fn speak_tls(&self, certificate: &str, key: &str) {
        let data = self.folder.join("data");
        let owner = std::fs::metadata(&data).expect("its folder");
        for (name, pem) in [("tls.crt", certificate), ("tls.key", key)] {
            let path = data.join(name);
            std::fs::write(&path, pem).expect("written");
            // It refuses a key that others may read.
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its owner's alone");
            chown(&path, Some(owner.uid()), Some(owner.gid())).expect("the server's");
        }
        for setting in ["ssl_cert_file = 'tls.crt'", "ssl_key_file = 'tls.key'", "ssl = on"] {
            self.command(&format!("ALTER SYSTEM SET {setting}"));
        }
        self.command("SELECT pg_reload_conf()");
    }

    fn address(&self, database: &str) -> PostgresAddress {
        self.url(database).parse().expect("an address")
    }

    /// Returns the socket on which it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Executes a statement on whole databases.
    pub(crate) fn command(&self, sql: &str) {
        self.command_in("postgres", sql);
    }

    /// Executes a statement in a database, on a thread on which the driver may block.
    fn command_in(&self, database: &str, sql: &str) {
        std::thread::scope(|scope| {
            let done = scope.spawn(|| self.connect(database).expect("connected").batch_execute(sql));
            done.join().expect("no panic").expect("done");
        });
    }

    /// Creates an empty database with the present schema.
    pub(crate) fn database(&'static self) -> TestDatabase {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("case_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.command(&format!("CREATE DATABASE {name} TEMPLATE template_store STRATEGY file_copy"));
        TestDatabase { server: self, name }
    }
}

/// A database that goes with the value.
pub(crate) struct TestDatabase {
    server: &'static PostgresServer,
    name: String,
}

impl TestDatabase {
    /// Executes a statement in it.
    pub(crate) fn command(&self, sql: &str) {
        self.server.command_in(&self.name, sql);
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Creates a copy of it, like a restored database.
    pub(crate) fn copied(&self) -> Self {
        let name = format!("{}_copy", self.name);
        self.server.command(&format!("CREATE DATABASE {name} TEMPLATE {} STRATEGY file_copy", self.name));
        Self { server: self.server, name }
    }

    /// Returns its URL over TCP, at a name of this machine.
    pub(crate) fn url_of(&self, host: &str, query: &str) -> String {
        format!("postgres://postgres@{host}:{}/{}?{query}", self.server.port(), self.name)
    }

    /// Returns its URL behind another port of this machine.
    pub(crate) fn url_at(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/{}?sslmode=disable", self.name)
    }

    /// Counts the connections to it that are encrypted.
    pub(crate) fn count_encrypted(&self) -> i64 {
        let whose = format!("datname = '{}'", self.name);
        self.count(&format!("pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND {whose}"))
    }

    /// Counts rows of something.
    pub(crate) fn count(&self, of: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {of}");
        let count = |client: &mut Client| client.query_one(&sql, &[]).expect("counted").get(0);
        std::thread::scope(|scope| {
            let counted = scope.spawn(|| count(&mut self.server.connect(&self.name).expect("connected")));
            counted.join().expect("no panic")
        })
    }

    /// Executes a statement in a transaction that lasts until the returned value is dropped.
    pub(crate) fn hold(&self, sql: &str) -> HeldTransaction {
        let (server, name, sql) = (self.server, self.name.clone(), format!("BEGIN; {sql}"));
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (end, is_over) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut client = server.connect(&name).expect("connected");
            client.batch_execute(&sql).expect("done");
            begun.send(()).expect("it is waited for");
            // Ends with the value.
            let _ = is_over.recv();
        });
        has_begun.recv().expect("begun");
        HeldTransaction { end: Some(end), thread: Some(thread) }
    }

    /// Returns where it is.
    pub(crate) fn address(&self) -> PostgresAddress {
        self.server.address(&self.name)
    }
}

/// A transaction that is taken back when this is dropped.
pub(crate) struct HeldTransaction {
    end: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for HeldTransaction {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        self.server.command(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// Returns a port that is free now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Removes the folders of processes that have ended.
fn remove_of_others() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("stentor-postgres-"));
        // The stage's folders have names of letters, and go with it.
        let process = process.filter(|process| process.bytes().all(|byte| byte.is_ascii_digit()));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
