//! The configurations of proxies in `packaging`, used by these proxies as they are; ports, certificate and names of files apart.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::faces::{Shop, ran};
use crate::foreign_server::{ForeignServer, free_address, is_installed};

const NAME: &str = "push.example.org";
/// More than the server takes of a message.
const REFUSED_BYTES: usize = 192 * 1_024;
/// More than nginx takes as it is installed.
const IMPORTED_BYTES: usize = 2 * 1_024 * 1_024;
const LINE: &str = "android,null,a-token-of-some-length\n";
/// The address of callers, which is none of the proxy's.
const CALLER: &str = "127.0.0.2";

/// A server behind a proxy.
struct Scene {
    shop: Shop,
    address: SocketAddr,
    _proxy: ForeignServer,
}

impl Scene {
    /// Starts nginx, or logs its absence.
    fn behind_nginx() -> Option<Self> {
        is_installed("nginx", "proxies").then(|| {
            Self::open("nginx/stentor.conf", |folder, text, address| {
                let text = text.replace("listen 443", &format!("listen {address}"));
                let text = text.replace("/etc/ssl/push.example.org", &folder.join("tls").display().to_string());
                let mut around = String::from("daemon off;\nmaster_process off;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n");
                for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
                    let _ = writeln!(around, "{kind}_temp_path {};", folder.join(kind).display());
                }
                let text = format!("pid {};\n{around}{text}}}\n", folder.join("pid").display());
                std::fs::write(folder.join("nginx.conf"), text).unwrap();
                let mut nginx = Command::new("nginx");
                nginx.arg("-c").arg(folder.join("nginx.conf"));
                nginx
            })
        })
    }

    /// Starts Caddy, or logs its absence.
    fn behind_caddy() -> Option<Self> {
        is_installed("caddy", "proxies").then(|| {
            Self::open("caddy/Caddyfile", |folder, text, address| {
                let global = format!(
                    "{{\n\tadmin off\n\tauto_https disable_redirects\n\thttps_port {}\n}}\n",
                    address.port()
                );
                let pair = folder.join("tls").display().to_string();
                let tls = format!("{NAME} {{\n\tbind {}\n\ttls {pair}.pem {pair}.key\n", address.ip());
                let text = format!("{global}{}", text.replacen(&format!("{NAME} {{\n"), &tls, 1));
                std::fs::write(folder.join("Caddyfile"), text).unwrap();
                let mut caddy = Command::new("caddy");
                caddy.args(["run", "--adapter", "caddyfile", "--config"]).arg(folder.join("Caddyfile"));
                caddy.env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
                caddy
            })
        })
    }

    fn open(configuration: &str, prepare: impl FnOnce(&Path, String, SocketAddr) -> Command) -> Self {
        let shop = Shop::open_with("[api]\ntrusted_proxies = [\"127.0.0.1\"]\n");
        let folder = shop.directory.path();
        let pair = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        std::fs::write(folder.join("tls.pem"), pair.cert.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(configuration);
        let text = std::fs::read_to_string(path).unwrap();
        let server = shop.server.process.url().strip_prefix("http://").unwrap();
        assert!(text.contains("127.0.0.1:8686"), "{text}");
        let address = free_address();
        let mut command = prepare(folder, text.replace("127.0.0.1:8686", server), address);
        let proxy = ForeignServer::start(&mut command, address);
        Self { shop, address, _proxy: proxy }
    }

    fn curl(&self, path: &str) -> Command {
        let port = self.address.port();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60", "--interface", CALLER, "--cacert"]);
        curl.arg(self.shop.directory.path().join("tls.pem"));
        curl.args(["--resolve", &format!("{NAME}:{port}:{}", self.address.ip())]);
        curl.arg(format!("https://{NAME}:{port}{path}"));
        curl
    }

    /// Sends a request with a body of JSON; returns the reply.
    fn ask(&self, path: &str, key: &str, body: &Value) -> Value {
        let mut curl = self.curl(path);
        curl.args([
            "--header",
            &format!("Authorization: Bearer {key}"),
            "--header",
            "Content-Type: application/json",
        ]);
        if !body.is_null() {
            curl.args(["--data", &body.to_string()]);
        }
        serde_json::from_str(&ran(&mut curl)).unwrap()
    }

    /// Sends a file as the body of a request.
    fn upload(&self, path: &str, media_type: &str, body: &[u8]) -> Value {
        let file = self.shop.directory.path().join("body");
        std::fs::write(&file, body).unwrap();
        let mut curl = self.curl(path);
        curl.args(["--header", &format!("Authorization: Bearer {}", self.shop.key)]);
        curl.args([
            "--header",
            &format!("Content-Type: {media_type}"),
            "--data-binary",
            &format!("@{}", file.display()),
        ]);
        serde_json::from_str(&ran(&mut curl)).unwrap()
    }

    fn passes_on_requests(&self) {
        let protocol = ran(self.curl("/healthz").args([
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_version} %{http_code}",
        ]));
        assert_eq!(protocol, "2 200");
        let metrics =
            ran(self.curl("/metrics").args(["--output", "/dev/null", "--write-out", "%{http_code}"]));
        assert_eq!(metrics, "404", "figures are for inside");
        let refused = self.upload("/v1/messages", "application/json", &vec![b' '; REFUSED_BYTES]);
        assert_eq!(refused["code"], "payload_too_large", "the server refuses in its own words: {refused}");
        let lines = format!("platform,provider,token\n{}", LINE.repeat(IMPORTED_BYTES / LINE.len()));
        let imported = self.upload("/v1/devices/import?dry_run=true", "text/csv", lines.as_bytes());
        assert_eq!(imported["valid"], IMPORTED_BYTES / LINE.len(), "an import has no limit: {imported}");
        let health = ["--http2", "--header", "Content-Type: application/grpc", "--header", "TE: trailers"];
        let empty = self.shop.directory.path().join("empty");
        std::fs::write(&empty, [0; 5]).unwrap();
        let mut call = self.curl("/grpc.health.v1.Health/Check");
        call.args(health).args([
            "--data-binary",
            &format!("@{}", empty.display()),
            "--output",
            "-",
            "--include",
        ]);
        let reply = ran(&mut call);
        assert!(reply.contains("application/grpc") && reply.contains("\u{8}\u{1}"), "SERVING: {reply:?}");
    }

    /// The caller writes a header of its own, which nobody may believe.
    fn tells_the_address_of_the_caller(&self) {
        let root = self.shop.server.root_key();
        let app = self.shop.server.ok(&["app", "list"])["apps"][0]["id"].as_str().unwrap().to_owned();
        let mut put = self.curl(&format!("/v1/apps/{app}/credentials/null"));
        put.args(["--request", "PUT", "--header", &format!("Authorization: Bearer {root}")]);
        put.args(["--header", "X-Forwarded-For: 203.0.113.9", "--json", "{}"]);
        ran(&mut put);
        let entries = self.ask("/v1/audit?action=credential.put", &root, &Value::Null);
        assert_eq!(entries["entries"][0]["address"], CALLER, "{entries}");
    }

    fn streams(&self) {
        let join = self.shop.server.ok(&["app", "key", "create", "--name", "devices", "--scope", "join"]);
        let device =
            self.ask("/gateway/v1/devices", join["secret"].as_str().unwrap(), &json!({"topics": ["news"]}));
        let login = format!("{}:{}", device["token"].as_str().unwrap(), device["secret"].as_str().unwrap());
        let events = self.shop.directory.path().join("events");
        let mut listening = self.curl("/gateway/v1/events");
        listening.args(["--no-buffer", "--user", &login]).stdout(std::fs::File::create(&events).unwrap());
        let mut listening = listening.spawn().unwrap();
        let shows = |text: &str| std::fs::read_to_string(&events).unwrap().contains(text);
        let waits = |text: &str, running: &mut std::process::Child| {
            while !shows(text) {
                assert_eq!(running.try_wait().unwrap(), None, "the stream has ended without {text}");
                std::thread::yield_now();
            }
        };
        // A proxy that collects a stream would show neither before the connection ends.
        waits(": open", &mut listening);
        let message = json!({"target": {"topic": "news"}, "data": {"k": "v"}});
        let sent = self.ask("/v1/messages", &self.shop.key, &message);
        waits(sent["id"].as_str().unwrap(), &mut listening);
        listening.kill().unwrap();
        listening.wait().unwrap();
    }

    fn upgrades_to_a_web_socket(&self) {
        let headers = [
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Protocol: push-notification",
        ];
        let mut upgrade = self.curl("/gateway/v1/autopush");
        upgrade
            .args(["--http1.1", "--include"])
            .args(headers.iter().flat_map(|header| ["--header", *header]));
        // The server closes a connection on which no hello comes.
        let output = upgrade.output().unwrap();
        let reply = String::from_utf8_lossy(&output.stdout).to_lowercase();
        assert!(
            reply.starts_with("http/1.1 101") && reply.contains("sec-websocket-accept: s3ppl"),
            "{reply}"
        );
    }

    fn all(&self) {
        self.passes_on_requests();
        self.tells_the_address_of_the_caller();
        self.streams();
        self.upgrades_to_a_web_socket();
    }
}

#[test]
fn nginx_passes_on_requests_bodies_of_any_size_events_upgrades_and_the_callers_address() {
    let Some(scene) = Scene::behind_nginx() else { return };
    scene.all();
}

#[test]
fn caddy_passes_on_requests_bodies_of_any_size_events_upgrades_and_the_callers_address() {
    let Some(scene) = Scene::behind_caddy() else { return };
    scene.all();
}
