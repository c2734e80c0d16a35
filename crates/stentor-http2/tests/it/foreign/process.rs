//! A foreign server's process: its requirements, its start, and a client for it.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command as Run, Stdio};
use std::sync::{Arc, OnceLock};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use stentor_http2::{Client, Endpoint, Limits, Roots};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_rustls::TlsConnector;

use crate::support::within;

/// The implementation of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nghttpd,
    Go,
    Netty,
    /// pushy's mock of APNs, on Netty.
    Mock,
}

/// The behaviour of a server.
pub(crate) struct Options {
    pub(crate) tls: &'static SupportedProtocolVersion,
    pub(crate) max_streams: u32,
    /// Initial window of a stream; `nghttpd` supports only one less than a power of two.
    pub(crate) window_bytes: u32,
    /// Requests after which a connection ends with GOAWAY; 0 for never, the only value that `nghttpd` supports.
    pub(crate) leave_after: usize,
    /// Disables the table of received headers and pads the server's frames; only `nghttpd` supports it.
    pub(crate) plain: bool,
}

/// A running server.
pub(crate) struct Foreign {
    port: u16,
    certificate: String,
    /// Killed when the value is dropped.
    child: Child,
    _folder: TempDir,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Nghttpd => "nghttpd",
            Self::Go => "go",
            Self::Netty | Self::Mock => "netty",
        }
    }

    /// Returns the name of a missing requirement of this server, if there is one.
    fn missing(self) -> Option<&'static str> {
        match self {
            Self::Nghttpd => said("nghttpd", "--version").is_none().then_some("nghttpd"),
            Self::Go => (!go_is_new_enough()).then_some("Go 1.24 or newer"),
            Self::Netty | Self::Mock => {
                let pins = std::fs::read(netty().join("pins")).ok();
                let current = pins.is_some() && pins == std::fs::read(sources().join("netty/pom.xml")).ok();
                (!current).then_some("pushy and its Netty: run crates/stentor-http2/tests/foreign/install")
            }
        }
    }
}

impl Foreign {
    /// Starts a server. If a requirement is missing, the test reports a skip, or fails when `STENTOR_TEST_REQUIRE` lists the server's name.
    pub(crate) async fn start(kind: Kind, options: &Options) -> Option<Self> {
        if let Some(what) = kind.missing() {
            skip(kind, what);
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let certificate = cert.pem();
        std::fs::write(folder.path().join("cert.pem"), &certificate).expect("written");
        std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).expect("written");
        let (child, port) = match kind {
            Kind::Nghttpd => within(20, nghttpd(folder.path(), options)).await,
            Kind::Go => within(60, told(Command::new(go_program()), folder.path(), options)).await,
            Kind::Netty | Kind::Mock => {
                let program = if kind == Kind::Mock { "netty/Mock.java" } else { "netty/Server.java" };
                let mut java = Command::new("java");
                java.arg("-cp").arg(netty().join("lib/*")).arg(sources().join(program));
                within(60, told(java, folder.path(), options)).await
            }
        };
        Some(Self { port, certificate, child, _folder: folder })
    }

    pub(crate) fn client(&self, limits: Limits) -> Client {
        let mut endpoint = Endpoint::new("127.0.0.1", self.port);
        endpoint.server_name = Some("localhost".into());
        endpoint.roots = Roots::Pem(self.certificate.clone().into());
        Client::new(&endpoint, limits).expect("usable endpoint")
    }

    /// Queries the mock for the number of pushes accepted, of those rejected, and of distinct ones.
    pub(crate) async fn pushes(&mut self) -> [usize; 3] {
        self.child.stdin.as_mut().expect("piped").write_all(b"?").await.expect("it runs");
        let mut line = String::new();
        BufReader::new(self.child.stdout.as_mut().expect("piped"))
            .read_line(&mut line)
            .await
            .expect("readable");
        numbers(line.trim())
    }

    /// Returns the version of TLS negotiated with a client that supports all versions.
    pub(crate) async fn negotiates(&self) -> ProtocolVersion {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("a certificate");
        roots.add(certificate).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let tcp = TcpStream::connect(("127.0.0.1", self.port)).await.expect("connected");
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.expect("a handshake");
        tls.get_ref().1.protocol_version().expect("negotiated")
    }
}

/// Starts one of our own programs, which prints its port and exits at the end of its input.
async fn told(mut command: Command, folder: &Path, options: &Options) -> (Child, u16) {
    let version = if options.tls.version == ProtocolVersion::TLSv1_2 { "TLSv1.2" } else { "TLSv1.3" };
    command.arg(folder.join("cert.pem")).arg(folder.join("key.pem")).arg(version);
    command.args([options.max_streams.to_string(), options.window_bytes.to_string()]);
    command.arg(options.leave_after.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let line = lines.next_line().await.expect("readable").expect("a line before the end");
    // The program prints nothing else on its own.
    child.stdout = Some(lines.into_inner().into_inner());
    let port = line.strip_prefix("port ").and_then(|port| port.parse().ok()).expect("a port");
    (child, port)
}

/// Starts `nghttpd`, which requires a port: a free one, or another one if it was taken in between.
async fn nghttpd(folder: &Path, options: &Options) -> (Child, u16) {
    let library = folder.join("openssl.cnf");
    std::fs::write(&library, openssl_config(options.tls)).expect("written");
    loop {
        let port =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).expect("free").port();
        let mut command = Command::new("nghttpd");
        command.args(["--address=127.0.0.1", "--echo-upload"]).env("OPENSSL_CONF", &library);
        command.arg(format!("--max-concurrent-streams={}", options.max_streams));
        command.arg(format!("--window-bits={}", (options.window_bytes + 1).ilog2()));
        if options.plain {
            command.args(["--header-table-size=0", "--padding=200"]);
        }
        command.arg(port.to_string()).arg(folder.join("key.pem")).arg(folder.join("cert.pem"));
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("started");
        if listens(&mut child, port).await {
            return (child, port);
        }
    }
}

/// `nghttpd` has no option for the version of TLS and uses the newest. If only SHA-384 is allowed for signatures, a key on P-256 is
/// unusable in TLS 1.3, which ties curve and hash together.
fn openssl_config(tls: &SupportedProtocolVersion) -> &'static str {
    match tls.version {
        ProtocolVersion::TLSv1_2 => {
            "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = tls\n\
             [tls]\nSignatureAlgorithms = ECDSA+SHA384\n"
        }
        _ => "",
    }
}

/// Polls a port until the server listens. Returns `false` if the process ended instead, because the port was taken.
async fn listens(child: &mut Child, port: u16) -> bool {
    let mut pause = tokio::time::interval(std::time::Duration::from_millis(5));
    loop {
        pause.tick().await;
        if child.try_wait().expect("a child").is_some() {
            return false;
        }
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return child.try_wait().expect("a child").is_none();
        }
    }
}

/// Builds the program once, from the standard library alone.
fn go_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = home().join("go/server");
        let mut build = Run::new("go");
        build.args(["build", "-o"]).arg(&program).arg(".").current_dir(sources().join("go"));
        build.env("GOTOOLCHAIN", "local").env("GOPROXY", "off").env("GOFLAGS", "-mod=mod");
        let output = build.output().expect("started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    })
}

fn go_is_new_enough() -> bool {
    let version = said("go", "version").unwrap_or_default();
    let minor = version.split("go1.").nth(1).and_then(|rest| rest.split(['.', ' ']).next());
    minor.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= 24)
}

/// Parses numbers separated by a space.
pub(crate) fn numbers<const COUNT: usize>(text: &str) -> [usize; COUNT] {
    let numbers: Vec<usize> = text.split(' ').map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("so many numbers")
}

fn said(program: &str, argument: &str) -> Option<String> {
    let output = Run::new(program).arg(argument).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")
}

/// Directory for the output of `install` and of the tests.
fn home() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("foreign")
}

fn netty() -> PathBuf {
    home().join("netty")
}

fn skip(kind: Kind, what: &str) {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|word| word.trim() == kind.word());
    assert!(!required, "missing: {what} (STENTOR_TEST_REQUIRE does not allow to skip {})", kind.word());
    // The thread of a test bears its name. Written straight to stderr, because the test harness captures the output of a passing test.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "skipped: {test}, missing: {what}");
}
