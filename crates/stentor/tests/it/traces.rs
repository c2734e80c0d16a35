//! Spans of a server, in an unmodified collector of OpenTelemetry.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::faces::{Shop, home, ran};
use crate::foreign_server::{ForeignServer, free_address};

const PATIENCE: Duration = Duration::from_secs(60);
/// The trace and the span of a caller.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// A collector that prints each span in full into a file.
struct Collector {
    output: std::path::PathBuf,
    endpoint: String,
    _server: ForeignServer,
}

impl Collector {
    fn start(home: &Path, folder: &Path) -> Self {
        let (address, output) = (free_address(), folder.join("spans"));
        let settings = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: \"{address}\"}}}}}}}}\n\
             exporters: {{debug: {{verbosity: detailed}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}\n"
        );
        let file = folder.join("collector.yaml");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new(home.join("judge"));
        command.arg(format!("--config={}", file.display())).stderr(File::create(&output).unwrap());
        let server = ForeignServer::start(&mut command, address);
        Self { output, endpoint: format!("http://{address}/v1/traces"), _server: server }
    }

    /// Waits for a span with this name, and returns its text: identities, times, attributes.
    fn span(&self, name: &str) -> String {
        let begun = Instant::now();
        loop {
            let text = std::fs::read_to_string(&self.output).unwrap();
            let mut spans = text.split("\nSpan #").skip(1);
            if let Some(span) = spans.find(|span| field(span, "Name") == name) {
                return span.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "no span is called {name}:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the value in a line as `Trace ID       : 0af7…`.
fn field<'a>(span: &'a str, name: &str) -> &'a str {
    let lines = span.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(key, _)| key.trim() == name).map_or("", |(_, value)| value.trim())
}

fn send(shop: &Shop, more: &[&str]) {
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--show-error",
        "--fail",
        "--header",
        &format!("Authorization: Bearer {}", shop.key),
    ]);
    curl.args(["--json", r#"{"target": "everyone", "notification": {"title": "hello"}}"#]).args(more);
    ran(curl.arg(format!("{}/v1/messages", shop.server.process.url())));
}

#[test]
fn a_collector_gets_the_spans_of_a_request_of_its_campaign_and_of_each_attempt() {
    let Some(home) = home("collector", "main.go") else { return };
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(&home, folder.path());
    let settings = format!("[trace]\nendpoint = \"{}\"\nsampled_percent = 100\n", collector.endpoint);
    let shop = Shop::open_with(&settings);
    shop.server.ok(&[
        "device",
        "register",
        "--platform",
        "android",
        "--provider",
        "null",
        "--token",
        "a-secret-token",
    ]);
    send(&shop, &["--header", &format!("traceparent: 00-{TRACE}-{SPAN}-01")]);
    let request = collector.span("POST /v1/messages");
    assert_eq!((field(&request, "Trace ID"), field(&request, "Parent ID")), (TRACE, SPAN), "{request}");
    assert!(request.contains("http.response.status_code: Int(202)"), "{request}");
    let campaign = collector.span("campaign");
    assert_ne!(field(&campaign, "Trace ID"), TRACE);
    assert!(campaign.contains(TRACE), "the campaign is not linked to its request: {campaign}");
    let attempt = collector.span("send null");
    assert_eq!(field(&attempt, "Trace ID"), field(&campaign, "Trace ID"));
    assert_eq!(field(&attempt, "Parent ID"), field(&campaign, "ID"));
    assert!(attempt.contains("stentor.answered: Int(1)"), "{attempt}");
    let everything = std::fs::read_to_string(&collector.output).unwrap();
    assert!(!everything.contains("a-secret-token") && !everything.contains(&shop.key), "{everything}");
}

#[test]
fn an_absent_collector_delays_nothing() {
    let address = free_address();
    let settings = format!("[trace]\nendpoint = \"http://{address}/v1/traces\"\nsampled_percent = 100\n");
    let shop = Shop::open_with(&settings);
    shop.server.ok(&["device", "register", "--platform", "android", "--provider", "null", "--token", "one"]);
    let begun = Instant::now();
    (0..50).for_each(|_| send(&shop, &[]));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
