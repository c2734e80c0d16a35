//! What operators watch a server with: a real Prometheus scrapes it, evaluates each expression of the dashboard and judges the alerts, and
//! a foreign validator reads the log.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::faces::{Shop, clients, home, ran};
use crate::foreign_server::{ForeignServer, free_address, is_installed};

const PATIENCE: Duration = Duration::from_secs(60);
/// The range of rates, which Grafana chooses; it holds two scrapes at least.
const RANGE: &str = "1m";
/// Fewer expressions would mean that the dashboard was not read.
const EXPRESSIONS_MIN_COUNT: usize = 25;

fn packaging(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(path)
}

/// A Prometheus that scrapes a server each second.
struct Prometheus {
    address: SocketAddr,
    _server: ForeignServer,
}

impl Prometheus {
    fn of(shop: &Shop) -> Self {
        let (folder, address) = (shop.directory.path(), free_address());
        let target = shop.server.process.url().strip_prefix("http://").unwrap();
        let settings = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: stentor\n    static_configs: [{{targets: [\"{target}\"]}}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), settings).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", folder.join("prometheus.yml").display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()));
        command.arg(format!("--web.listen-address={address}")).arg("--log.level=error");
        Self { address, _server: ForeignServer::start(&mut command, address) }
    }

    /// Evaluates an expression; returns a line for each series of the result, or the complaint.
    fn evaluate(&self, expression: &str) -> Result<Vec<String>, String> {
        let mut query = Command::new("promtool");
        query.args(["query", "instant", &format!("http://{}", self.address), expression]);
        let output = query.output().unwrap();
        if !output.status.success() {
            return Err(format!("{expression}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// Waits until an expression has a value; a Prometheus that has just started answers none.
    fn until(&self, expression: &str) {
        let begun = Instant::now();
        while !self.evaluate(expression).is_ok_and(|values| !values.is_empty()) {
            assert!(begun.elapsed() < PATIENCE, "{expression} has no value");
        }
    }
}

/// Lists the expressions of the dashboard with the titles of their panels, with values for its variables.
fn expressions() -> Vec<(String, String)> {
    let dashboard = std::fs::read_to_string(packaging("grafana/stentor.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(move |target| (title.to_owned(), target["expr"].as_str().unwrap().to_owned()))
    });
    let filled =
        |expression: String| expression.replace("$__rate_interval", RANGE).replace("$job", "stentor");
    targets.map(|(title, expression)| (title, filled(expression))).collect()
}

/// Sends a message that one device accepts and that waits for a credential for another, and one that is refused.
fn work(shop: &Shop) {
    shop.server.ok(&["device", "register", "--platform", "android", "--provider", "null", "--token", "one"]);
    shop.server.ok(&["device", "register", "--platform", "android", "--token", "waits"]);
    shop.server.ok(&["message", "send", "--everyone", "--body", "hello"]);
    let (code, _) = shop.server.run(&["message", "send", "--topic", "nobody", "--body", "hello"]);
    assert_ne!(code, 0, "there is no such topic");
}

#[test]
fn each_expression_of_the_dashboard_has_a_value_in_a_prometheus_that_scrapes_a_server() {
    if !is_installed("prometheus", "prometheus") || !is_installed("promtool", "prometheus") {
        return;
    }
    let shop = Shop::open();
    let prometheus = Prometheus::of(&shop);
    prometheus.until("stentor_uptime_seconds");
    // Twice: a rate needs a series that was there before it grew.
    work(&shop);
    prometheus.until("stentor_deliveries_total > 0");
    prometheus.until("stentor_requests_total{outcome!=\"ok\"} > 0");
    work(&shop);
    prometheus.until(&format!("sum(rate(stentor_deliveries_total[{RANGE}])) > 0"));
    prometheus.until(&format!("sum(rate(stentor_requests_total{{outcome!=\"ok\"}}[{RANGE}])) > 0"));
    let expressions = expressions();
    assert!(expressions.len() >= EXPRESSIONS_MIN_COUNT, "{expressions:?}");
    for (title, expression) in expressions {
        let of_failures = expression.contains("outcome!=\"accepted\"");
        let values = prometheus.evaluate(&expression).unwrap();
        assert!(of_failures || !values.is_empty(), "{title}: {expression} has no value");
    }
    // The expressions about attempts that were not accepted name series that exist.
    let attempts = "count by (provider, outcome, code) (stentor_deliveries_total)";
    assert!(prometheus.evaluate(attempts).unwrap()[0].contains("provider=\"null\""));
}

#[test]
fn each_alert_fires_when_it_should_and_none_does_while_all_is_well() {
    if !is_installed("promtool", "prometheus") {
        return;
    }
    let rules = packaging("prometheus/stentor.rules.yml");
    ran(Command::new("promtool").args(["check", "rules"]).arg(&rules));
    let tests = packaging("prometheus/stentor.tests.yml");
    ran(Command::new("promtool").args(["test", "rules"]).arg(&tests));
    let [rules, tests] = [rules, tests].map(|path| std::fs::read_to_string(path).unwrap());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring.md");
    let page = std::fs::read_to_string(page).unwrap();
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in alerts {
        assert!(tests.contains(&format!("- name: {alert} fires")), "no story makes {alert} fire");
        assert!(page.contains(&format!("`{alert}`")), "docs/monitoring.md does not explain {alert}");
    }
}

#[test]
fn every_line_of_a_log_in_json_is_as_its_schema_says() {
    let Some(home) = home("schemathesis", "requirements.txt") else { return };
    let shop = Shop::open_with("[log]\nformat = \"json\"\nlevel = \"trace\"\n");
    work(&shop);
    let log = shop.directory.path().join("server.log");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/log.schema.json");
    let mut judge = Command::new(home.join("bin/python"));
    judge.arg(clients("schemathesis").join("log_judge.py")).arg(schema).arg(log);
    let printed = ran(&mut judge);
    assert!(printed.contains("is content"), "{printed}");
}
