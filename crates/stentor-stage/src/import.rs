//! Imports the population through the public API, as one stream of NDJSON.

use crate::client::ApiClient;
use crate::devices::{DevicePopulation, PopulationMember};
use crate::failure::CommandFailure;
use crate::reporter::Reporter;
use crate::text::thousands;
use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Some 64 KiB: large enough to write at once, small enough that progress is seen.
const LINES_PER_PART: u64 = 256;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Writes the line with which a device is imported.
pub type MemberWriter = fn(DevicePopulation, PopulationMember, &mut String);

/// Imports every device and returns the time taken.
pub async fn run(
    client: &ApiClient,
    population: DevicePopulation,
    reporter: &dyn Reporter,
) -> anyhow::Result<Duration> {
    run_with(client, population, DevicePopulation::write_line, reporter).await
}

/// Imports every device, with lines from another writer, and returns the time taken.
pub async fn run_with(
    client: &ApiClient,
    population: DevicePopulation,
    writer: MemberWriter,
    reporter: &dyn Reporter,
) -> anyhow::Result<Duration> {
    let sent = Arc::new(AtomicU64::new(0));
    let query = [("format", "ndjson".to_owned())];
    let import =
        client.stream("/v1/devices/import", &query, "application/x-ndjson", lines(population, writer, &sent));
    let mut import = std::pin::pin!(import);
    let (started, mut progress) = (Instant::now(), reporter.begin("import", population.devices()));
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    let reply = loop {
        tokio::select! {
            reply = &mut import => break reply?,
            _ = ticks.tick() => progress.update(sent.load(Ordering::Relaxed)),
        }
    };
    let created = reply["created"].as_u64().unwrap_or(0);
    let took = started.elapsed();
    progress.finish(created);
    if created == population.devices() && reply["failed"].as_u64() == Some(0) {
        return Ok(took);
    }
    let sentence = format!(
        "of {} devices {} were imported; the server said: {reply}",
        thousands(population.devices()),
        thousands(created)
    );
    Err(CommandFailure::not_done(sentence).into())
}

/// Generates the lines only as the connection takes them.
fn lines(population: DevicePopulation, writer: MemberWriter, sent: &Arc<AtomicU64>) -> Body {
    let sent = Arc::clone(sent);
    let starts = (0..population.devices()).step_by(LINES_PER_PART as usize);
    let parts = starts.map(move |start| {
        let end = (start + LINES_PER_PART).min(population.devices());
        let mut lines = String::with_capacity(256 * LINES_PER_PART as usize);
        for place in start..end {
            writer(population, population.member(place), &mut lines);
        }
        // A number for the progress only: no other memory is read by it.
        sent.store(end, Ordering::Relaxed);
        Ok::<_, Infallible>(Bytes::from(lines))
    });
    Body::wrap_stream(stream::iter(parts))
}
