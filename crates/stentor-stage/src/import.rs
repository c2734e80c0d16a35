//! Imports the population through the public API, as one stream of NDJSON.

use crate::client::ApiClient;
use crate::devices::{DevicePopulation, PopulationMember, TokenOrigins};
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

/// Imports every device and returns the time taken.
pub async fn run(
    client: &ApiClient,
    population: DevicePopulation,
    reporter: &dyn Reporter,
) -> anyhow::Result<Duration> {
    run_with(client, population, DevicePopulation::write_line, reporter).await
}

/// Imports every device, of which some bear the address of their push service in their tokens.
pub async fn run_at(
    client: &ApiClient,
    population: DevicePopulation,
    origins: TokenOrigins,
    reporter: &dyn Reporter,
) -> anyhow::Result<Duration> {
    let writer = move |population: DevicePopulation, member, lines: &mut String| {
        population.write_line_at(member, Some(&origins), lines);
    };
    run_with(client, population, writer, reporter).await
}

/// Imports every device, with lines from another writer, and returns the time taken.
pub async fn run_with(
    client: &ApiClient,
    population: DevicePopulation,
    writer: impl Fn(DevicePopulation, PopulationMember, &mut String) + Send + 'static,
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
fn lines(
    population: DevicePopulation,
    writer: impl Fn(DevicePopulation, PopulationMember, &mut String) + Send + 'static,
    sent: &Arc<AtomicU64>,
) -> Body {
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
