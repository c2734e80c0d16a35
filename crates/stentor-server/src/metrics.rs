//! Metrics, collected on request: nothing is counted twice, and no label names a device, a user or a token.

mod exposition;
mod gateway;
mod listener;
mod process;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use stentor_core::ports::queue::LaneDepth;
use stentor_core::ports::store::StoreFigures;
use stentor_gateway::GatewayStats;

use crate::operation_meter::OperationStats;
use crate::pipeline::Failure;
use crate::pipeline::settle::kind::OutcomeKind;
use crate::pipeline::stats::{BUCKETS_SECONDS, DispatchStats, HistogramStats, PipelineStats, QuotaStats};
use crate::service::Service;
use crate::status::{ServerStatus, oldest_ready};
use listener::ListenerFacts;
use process::ProcessFacts;

type Written = Result<(), std::fmt::Error>;
type Labels<'a> = Vec<(&'a str, String)>;

pub use exposition::Exposition;

/// Writes all metrics in a format.
pub async fn render(service: &Service, server_status: &ServerStatus, as_what: Exposition) -> String {
    let depths = server_status.depths().await.unwrap_or_default();
    let counts = counts(service);
    let now = server_status.clock.now();
    let gathered = Gathered {
        oldest_seconds: oldest_ready(&depths, now).as_secs_f64(),
        depths,
        stats: server_status.pipeline.stats(),
        failures: server_status.pipeline.failures(),
        counts,
        uptime_seconds: server_status.uptime().as_secs_f64(),
        listener: ListenerFacts::of(service, server_status, now),
        store: server_status.store_figures().await,
        gateway: server_status.pipeline.gateway_stats(),
        operations: server_status.operations.picture(),
    };
    let (mut ours, mut process) = (Registry::with_prefix("stentor"), Registry::default());
    ours.register_collector(Box::new(gathered));
    process.register_collector(Box::new(ProcessFacts::now()));
    let mut text = String::new();
    let written = encode_registry(&mut text, &ours).and_then(|()| encode(&mut text, &process));
    as_what.of(if written.is_ok() { text } else { String::from("# EOF\n") })
}

/// A snapshot of everything at one moment.
#[derive(Debug)]
struct Gathered {
    depths: Vec<LaneDepth>,
    oldest_seconds: f64,
    stats: PipelineStats,
    failures: Vec<Failure>,
    counts: [(&'static str, &'static str, u64); 6],
    uptime_seconds: f64,
    listener: ListenerFacts,
    store: Option<StoreFigures>,
    gateway: GatewayStats,
    operations: Vec<OperationStats>,
}

fn counts(service: &Service) -> [(&'static str, &'static str, u64); 6] {
    let counters = service.counters();
    [
        ("messages_accepted", "Messages kept and answered with 202", &counters.messages_accepted),
        ("messages_refused", "Messages refused because the queue was full", &counters.messages_refused),
        ("idempotent_replays", "Requests answered again from their idempotency key", &counters.replayed),
        ("devices_created", "Devices made known", &counters.devices_created),
        ("devices_updated", "Devices registered again", &counters.devices_updated),
        ("import_lines_failed", "Import lines refused", &counters.import_lines_failed),
    ]
    .map(|(name, help, counter)| (name, help, counter.load(Ordering::Relaxed)))
}

impl Collector for Gathered {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Written {
        let to = &mut encoder;
        process::encode_build(to)?;
        for (name, help, count) in self.counts {
            counters(to, name, help, [(Labels::new(), count)])?;
        }
        gauges(to, "uptime_seconds", "Time since start", [(Labels::new(), self.uptime_seconds)])?;
        self.listener.encode(to)?;
        self.operations(to)?;
        gateway::encode(&self.gateway, to)?;
        let log = self.store.map(|figures| (Labels::new(), figures.log_bytes as f64));
        gauges(to, "store_wal_bytes", "Size of the store's write-ahead log", log)?;
        self.queue(to)?;
        self.pipeline(to)?;
        self.wire(to)?;
        self.quotas(to)?;
        self.outcomes(to)
    }
}

impl Gathered {
    /// Writes the metrics of operations. Labels are the names and error codes of the contract, which bound their number.
    fn operations(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        let counts = self.operations.iter().flat_map(|one| {
            one.by_outcome.iter().map(|(outcome, count)| {
                let labels =
                    vec![("operation", one.operation.to_owned()), ("outcome", (*outcome).to_owned())];
                (labels, *count)
            })
        });
        counters(
            to,
            "requests",
            "Requests by operation and result: ok, abandoned, or the code of a refusal",
            counts,
        )?;
        let durations = self.operations.iter().map(|one| {
            let labels: Labels<'_> = vec![("operation", one.operation.to_owned())];
            (labels, &one.durations)
        });
        histograms(to, "request_duration_seconds", "Time of requests by operation", durations)
    }

    fn queue(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        // Summed over apps: a reader of metrics must not learn how much each app sends.
        let mut sums = BTreeMap::new();
        for depth in &self.depths {
            let states = [("ready", depth.ready), ("delayed", depth.delayed), ("leased", depth.leased)];
            for (state, count) in states {
                *sums.entry((depth.lane.provider, depth.lane.class, state)).or_insert(0) += count;
            }
        }
        let depths = sums.into_iter().map(|((provider, class, state), count): (_, u64)| {
            let labels = vec![
                ("provider", provider.to_string()),
                ("class", class.to_string()),
                ("state", state.to_owned()),
            ];
            (labels, count as f64)
        });
        gauges(to, "queue_depth", "Chunks in the queue", depths)?;
        let oldest = [(Labels::new(), self.oldest_seconds)];
        gauges(to, "queue_oldest_age_seconds", "Age of the oldest chunk that is due and not leased", oldest)
    }

    fn pipeline(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        let stats = &self.stats;
        let of = |count: f64| [(Labels::new(), count)];
        gauges(to, "producers", "Producers at work", of(stats.producers as f64))?;
        let unsettled = stats.unsettled_deliveries as f64;
        gauges(to, "unsettled_deliveries", "Deliveries leased and not settled", of(unsettled))?;
        let total = |count: u64| [(Labels::new(), count)];
        counters(to, "settlements_stale", "Settlements after a lost lease", total(stats.stale_settlements))?;
        counters(to, "store_retries", "Store calls tried again", total(stats.store_retries))?;
        self.failures(to)?;
        let quarantined = total(stats.chunks_quarantined);
        counters(to, "chunks_set_aside", "Damaged chunks given up", quarantined)?;
        let rows = self.store.map(|figures| (Labels::new(), figures.damaged_rows));
        counters(to, "rows_damaged", "Rows that could not be read and are left out of lists", rows)?;
        let recovered = stats.recovery.deliveries;
        counters(
            to,
            "recovered_deliveries",
            "Deliveries found leased and unsettled at start",
            total(recovered),
        )?;
        self.dispatchers(to, "consumers", "Consumers now", |dispatcher| dispatcher.consumers as f64)?;
        self.dispatchers(to, "lanes_parked", "Lanes that rest", |dispatcher| dispatcher.parked.len() as f64)
    }

    fn failures(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        let mut counts = BTreeMap::new();
        for failure in &self.failures {
            *counts.entry(&failure.part).or_insert(0) += 1;
        }
        let counts = counts.into_iter().map(|(part, count)| (vec![("part", part.clone())], count));
        counters(
            to,
            "pipeline_failures",
            "Parts of the pipeline that failed; a failure stops the pipeline",
            counts,
        )
    }

    fn wire(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        let gauge = |dispatcher: &DispatchStats| dispatcher.wire;
        self.dispatchers(to, "provider_inflight", "Requests written and not answered", |f| {
            gauge(f).inflight as f64
        })?;
        self.dispatchers(to, "provider_inflight_limit", "Current limit of requests in flight", |f| {
            gauge(f).inflight_limit as f64
        })?;
        self.dispatchers(to, "provider_latency_floor_seconds", "Shortest recent response time", |f| {
            gauge(f).latency_floor.as_secs_f64()
        })?;
        self.dispatchers(to, "provider_connections", "Open connections", |f| gauge(f).connections as f64)?;
        self.totals(to, "provider_goaway", "GOAWAY frames seen", |f| gauge(f).drains)?;
        self.totals(to, "provider_resets", "Streams reset by the push service", |f| gauge(f).aborts)?;
        self.totals(to, "provider_connect_failures", "Connections that failed to open", |f| {
            gauge(f).connect_failures
        })
    }

    /// Writes quotas, summed over credentials like the queue over apps.
    fn quotas(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        let sum = |dispatcher: &DispatchStats, of: fn(&QuotaStats) -> f64| {
            dispatcher.quotas.iter().map(of).sum::<f64>()
        };
        self.dispatchers(
            to,
            "provider_quota_per_minute",
            "Messages per minute that quotas allow",
            |dispatcher| sum(dispatcher, |quota| quota.per_minute as f64),
        )?;
        let help = "Messages per minute that quotas allow while credentials warm up";
        self.dispatchers(to, "provider_quota_now_per_minute", help, |dispatcher| {
            sum(dispatcher, |quota| quota.per_minute_now as f64)
        })?;
        self.dispatchers(to, "provider_quota_tokens", "Messages that quotas allow at once", |dispatcher| {
            sum(dispatcher, |quota| quota.tokens as f64)
        })?;
        let waited = self.stats.providers.iter().map(|dispatcher| {
            let seconds = dispatcher.quotas.iter().map(|quota| quota.waited.as_secs_f64()).sum();
            (provider_label(dispatcher), seconds)
        });
        seconds(to, "provider_throttled_seconds", "Time that work has waited for quotas", waited)
    }

    fn outcomes(&self, to: &mut DescriptorEncoder<'_>) -> Written {
        self.totals(to, "delivery_attempts", "Attempts at push services", |dispatcher| dispatcher.attempts)?;
        let outcomes = self.stats.providers.iter().flat_map(|dispatcher| {
            dispatcher.outcomes.iter().map(move |one| {
                let labels = vec![
                    ("provider", dispatcher.provider.to_string()),
                    ("outcome", one.outcome.as_str().to_owned()),
                    ("code", one.reason.to_string()),
                ];
                (labels, one.count)
            })
        });
        counters(to, "deliveries", "Attempts by outcome", outcomes)?;
        let gone = self.stats.providers.iter().flat_map(|dispatcher| {
            let ended = dispatcher.outcomes.iter().filter(|one| one.outcome == OutcomeKind::Unregistered);
            ended.map(|one| {
                (
                    vec![("provider", dispatcher.provider.to_string()), ("reason", one.reason.to_string())],
                    one.count,
                )
            })
        });
        counters(to, "tokens_removed", "Tokens that a push service declared dead", gone)?;
        self.histograms(
            to,
            "provider_request_duration_seconds",
            "Time of a batch at its provider",
            |dispatcher| &dispatcher.batch_duration,
        )?;
        self.histograms(to, "e2e_latency_seconds", "Time from the due time to acceptance", |dispatcher| {
            &dispatcher.e2e_latency
        })
    }

    fn dispatchers(
        &self,
        to: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&DispatchStats) -> f64,
    ) -> Written {
        gauges(
            to,
            name,
            help,
            self.stats.providers.iter().map(|dispatcher| (provider_label(dispatcher), value(dispatcher))),
        )
    }

    fn totals(
        &self,
        to: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&DispatchStats) -> u64,
    ) -> Written {
        counters(
            to,
            name,
            help,
            self.stats.providers.iter().map(|dispatcher| (provider_label(dispatcher), value(dispatcher))),
        )
    }

    fn histograms(
        &self,
        to: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&DispatchStats) -> &HistogramStats,
    ) -> Written {
        let providers = self.stats.providers.iter();
        histograms(to, name, help, providers.map(|one| (provider_label(one), value(one))))
    }
}

fn histograms<'a>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels<'a>, &'a HistogramStats)>,
) -> Written {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (labels, histogram) in values {
        let total = histogram.counts.iter().sum();
        let mut one = metric.encode_family(&labels)?;
        one.encode_histogram::<NoLabelSet>(histogram.sum_seconds, total, &buckets(histogram), None)?;
    }
    Ok(())
}

fn provider_label(dispatcher: &DispatchStats) -> Labels<'static> {
    vec![("provider", dispatcher.provider.to_string())]
}

/// Pairs each bucket with its bound; the encoder accumulates them.
fn buckets(histogram: &HistogramStats) -> Vec<(f64, u64)> {
    let bounds = BUCKETS_SECONDS.iter().copied().chain([f64::INFINITY]);
    bounds.zip(histogram.counts.iter().copied()).collect()
}

fn gauges<'a>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels<'a>, f64)>,
) -> Written {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
    values.into_iter().try_for_each(|(labels, value)| one(&mut metric, &labels, MetricValue::Gauge(value)))
}

fn counters<'a>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels<'a>, u64)>,
) -> Written {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    values.into_iter().try_for_each(|(labels, value)| one(&mut metric, &labels, MetricValue::Counter(value)))
}

fn seconds<'a>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels<'a>, f64)>,
) -> Written {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    values.into_iter().try_for_each(|(labels, value)| one(&mut metric, &labels, MetricValue::Seconds(value)))
}

enum MetricValue {
    Gauge(f64),
    Seconds(f64),
    Counter(u64),
}

fn one(metric: &mut MetricEncoder<'_>, labels: &Labels<'_>, value: MetricValue) -> Written {
    if labels.is_empty() { value.write(metric) } else { value.write(&mut metric.encode_family(labels)?) }
}

impl MetricValue {
    fn write(self, to: &mut MetricEncoder<'_>) -> Written {
        match self {
            Self::Gauge(value) => to.encode_gauge(&value),
            Self::Seconds(value) => to.encode_counter::<NoLabelSet, f64, f64>(&value, None),
            Self::Counter(value) => to.encode_counter::<NoLabelSet, u64, f64>(&value, None),
        }
    }
}
