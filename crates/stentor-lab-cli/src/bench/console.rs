//! The web console over a large registry: the time of each view's requests, and what open pages cost the server.

use super::campaigns::ended;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::client::ApiClient;
use stentor_stage::devices::DevicePopulation;
use stentor_stage::import;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};
use stentor_stage::text::cell;

/// Requests for each view.
const REPEATS: usize = 20;
/// The interval at which the overview reads, and the one at which the page of a running campaign does.
const OVERVIEW_INTERVAL: Duration = Duration::from_secs(5);
const CAMPAIGN_INTERVAL: Duration = Duration::from_secs(1);

/// Options of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsoleOptions {
    /// Devices in the registry, all of them in the audience of a campaign.
    pub(crate) devices: u64,
    /// Readings of each page.
    pub(crate) readings: u32,
}

/// The requests of one view.
struct View {
    name: &'static str,
    requests: Vec<String>,
}

/// The times of one view, in milliseconds.
pub(crate) struct ViewTimes {
    pub(crate) name: &'static str,
    pub(crate) ms: Samples,
}

/// The cost of an open page: the server's processor time for one reading, over the interval of the readings.
pub(crate) struct PageCost {
    pub(crate) name: &'static str,
    reading_ms: f64,
    interval: Duration,
}

impl PageCost {
    /// Returns the share of a processor that the page costs while it is open.
    pub(crate) fn processor_percent(&self) -> f64 {
        self.reading_ms / self.interval.as_secs_f64() / 10.0
    }

    fn object(&self) -> Value {
        json!({
            "name": self.name,
            "processor_percent": self.processor_percent(),
            "reading_cpu_ms": self.reading_ms,
            "interval_seconds": self.interval.as_secs_f64(),
        })
    }
}

/// Results of the bench.
pub(crate) struct ConsoleReport {
    options: ConsoleOptions,
    /// The views, in the order of the console.
    pub(crate) views: Vec<ViewTimes>,
    /// The pages that read again and again.
    pub(crate) pages: Vec<PageCost>,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: ConsoleOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<ConsoleReport> {
    let mut stage = Stage::build(&StageOptions::with_sinks(options.devices + 10_000), reporter).await?;
    import::run(&stage.client, DevicePopulation::new(options.devices, 1), &**reporter).await?;
    let message = json!({"target": "everyone", "notification": {"title": "To all"}});
    let campaign = cell(&stage.client.post("/v1/messages", &message).await?["campaign"]);
    ended(&stage.client, &campaign).await?;
    let mut views = Vec::new();
    for view in views_of(&stage.client, &campaign).await? {
        views.push(times(&stage.client, view).await?);
    }
    views.push(dry_run(&stage.client, &message).await?);
    let app = stage.client.app().unwrap_or_default().to_owned();
    let overview = [
        "/readyz",
        "/v1/status",
        "/v1/nodes",
        "/v1/campaigns?limit=20",
        &format!("/v1/apps/{app}/credentials"),
    ]
    .map(str::to_owned);
    let of_campaign = [format!("/v1/campaigns/{campaign}")];
    let mut pages = Vec::new();
    for (name, interval, requests) in [
        ("overview", OVERVIEW_INTERVAL, &overview[..]),
        ("running campaign", CAMPAIGN_INTERVAL, &of_campaign[..]),
    ] {
        let reading_ms = reading_cpu_ms(&mut stage, options.readings, requests).await?;
        pages.push(PageCost { name, reading_ms, interval });
    }
    Ok(ConsoleReport { options, views, pages })
}

impl ConsoleReport {
    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let views = self.views.iter().map(|view| {
            json!({"name": view.name, "p50_ms": view.ms.quantile(0.5), "max_ms": view.ms.quantile(1.0)})
        });
        json!({
            "devices": self.options.devices,
            "readings": self.options.readings,
            "views": views.collect::<Vec<_>>(),
            "pages": self.pages.iter().map(PageCost::object).collect::<Vec<_>>(),
        })
    }
}

/// Lists the views and their requests; a page in the middle of a list stands for those that a person turns to.
async fn views_of(client: &ApiClient, campaign: &str) -> anyhow::Result<Vec<View>> {
    let message = cell(&client.get(&format!("/v1/campaigns/{campaign}")).await?["message"]);
    let first = client.get("/v1/devices?limit=1000").await?;
    let device = cell(&first["devices"][500]["id"]);
    let deliveries = format!("/v1/messages/{message}/deliveries?limit=25");
    let view = |name, requests: &[&str]| View {
        name,
        requests: requests.iter().map(|one| (*one).to_owned()).collect(),
    };
    Ok(vec![
        view("overview", &["/readyz", "/v1/status", "/v1/nodes", "/v1/campaigns?limit=20"]),
        view("apps", &["/v1/apps"]),
        view("campaigns", &["/v1/campaigns?limit=25"]),
        view("campaign", &[&format!("/v1/campaigns/{campaign}"), &format!("/v1/messages/{message}")]),
        view("deliveries of a campaign", &[&deliveries]),
        view("its rejected deliveries, of which there is none", &[&format!("{deliveries}&state=rejected")]),
        view("one delivery", &[&format!("/v1/messages/{message}/deliveries/{device}")]),
        view("devices", &["/v1/devices?limit=50", &format!("/v1/devices?limit=50&after={device}")]),
        view("devices in one state, of which there is none", &["/v1/devices?limit=50&state=retired"]),
        view("device", &[&format!("/v1/devices/{device}"), &format!("/v1/devices/{device}/topics")]),
        view("history of a device", &[&format!("/v1/devices/{device}/deliveries?limit=25")]),
        view("users", &["/v1/users?limit=50"]),
        view("groups", &["/v1/groups?limit=50"]),
        view("topics", &["/v1/topics?limit=50"]),
        view("schedules", &["/v1/schedules?limit=25"]),
        view("approvals", &["/v1/proposals?limit=25"]),
        view("upstream", &["/v1/upstream/messages?limit=25", "/v1/upstream/dead-letters?limit=25"]),
        view("audit trail", &["/v1/audit?limit=50"]),
        view("settings", &["/v1/settings"]),
    ])
}

/// Makes the requests of a view again and again, one after the other, and returns the time of each view.
async fn times(client: &ApiClient, view: View) -> anyhow::Result<ViewTimes> {
    let mut ms = Samples::default();
    for _ in 0..REPEATS {
        let began = Instant::now();
        for request in &view.requests {
            client.get(request).await?;
        }
        ms.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(ViewTimes { name: view.name, ms })
}

/// Counts the audience of everyone, as the page for composing does.
async fn dry_run(client: &ApiClient, message: &Value) -> anyhow::Result<ViewTimes> {
    let mut message = message.clone();
    message["dry_run"] = true.into();
    let mut ms = Samples::default();
    for _ in 0..REPEATS {
        let began = Instant::now();
        client.post("/v1/messages", &message).await?;
        ms.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(ViewTimes { name: "dry run to everyone", ms })
}

/// Makes the requests of a page again and again without a pause, and returns the server's processor time for one reading. What an idle
/// server does meanwhile is in it.
async fn reading_cpu_ms(stage: &mut Stage, readings: u32, requests: &[String]) -> anyhow::Result<f64> {
    let before = stage.usage().cpu_seconds;
    for _ in 0..readings {
        for request in requests {
            stage.client.get(request).await?;
        }
    }
    Ok(1e3 * (stage.usage().cpu_seconds - before) / f64::from(readings))
}
