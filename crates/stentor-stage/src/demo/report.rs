//! The report of the demo at its end: counted numbers only, and the verdict on the proof.

use super::campaign::CampaignResult;
use super::comparison::{Comparison, EmulatorCounts};
use super::options::DemoOptions;
use super::proof::ProofFacts;
use crate::child_process::ResourceUsage;
use crate::devices::StagedService;
use crate::emulated;
use crate::engines::EngineSeconds;
use crate::ledger::LedgerTotals;
use crate::limits::max_unsettled;
use crate::nodes::NodeFigures;
use crate::troubles::Trouble;
use serde_json::{Value, json};
use stentor_machine::emulation::NOT_TIMED;

/// Fields that hold times, values that rest on times, or memory; on an emulated processor the memory is that of the emulator.
const TIMED: [&str; 14] = [
    "wall_seconds",
    "pushes_per_second",
    "import_seconds",
    "server_cpu_seconds",
    "server_cpu_seconds_total",
    "server_peak_rss_bytes",
    "campaign_peak_rss_bytes",
    "import_cpu_seconds",
    "import_peak_rss_bytes",
    "postgres_cpu_seconds",
    "nats_cpu_seconds",
    "nodes",
    "processor_seconds",
    "processor_seconds_per_million_pushes",
];

/// The findings, before they are judged.
pub struct DemoFindings {
    /// The number of devices.
    pub devices: u64,
    /// The result of the campaign.
    pub run: CampaignResult,
    /// The result of the comparison with the ledger.
    pub comparison: Comparison,
    /// The usage of the server's processes.
    pub usage: ResourceUsage,
    /// The cost of the import.
    pub import: ImportCost,
    /// The limits in force.
    pub limits: Value,
}

/// The faults injected into a cluster while its campaign ran.
pub struct ClusterFacts {
    /// Faults that were planned, and that were done.
    pub faults: [u32; 2],
    /// Faults of which some cut answers of push services off.
    pub unanswered: u32,
    /// Servers, of which each fault may stop all.
    pub nodes: u32,
    /// Further violations.
    pub broken: Vec<String>,
}

/// The figures of devices of our own gateway.
#[derive(Clone, Copy, Debug)]
pub struct GatewayFigures {
    /// The maximum number of devices connected at once.
    pub connected_max: u64,
    /// Connections that let a device in.
    pub connections: u64,
    /// Messages that devices got, repeats among them.
    pub receptions: u64,
}

/// The cost of the import.
pub struct ImportCost {
    /// The duration of the import.
    pub seconds: f64,
    /// The server's usage for it, if the import was a process of its own.
    pub usage: Option<ResourceUsage>,
}

/// Everything that was found.
pub struct DemoReport {
    /// The number of devices.
    pub devices: u64,
    /// The result of the campaign.
    pub run: CampaignResult,
    /// The result of the comparison of ledger and emulators.
    pub comparison: Comparison,
    /// The usage of the server's processes.
    pub usage: ResourceUsage,
    /// The cost of the import.
    pub import: ImportCost,
    /// The limits in force.
    pub limits: Value,
    /// The maximum number of duplicates.
    pub allowed_duplicates: u64,
    /// The violations, a sentence each.
    pub broken: Vec<String>,
    /// The figures of devices of our own gateway; `None` for a campaign through push services.
    pub gateway: Option<GatewayFigures>,
}

impl DemoReport {
    /// Draws the conclusions.
    pub(super) fn new(options: &DemoOptions, findings: DemoFindings) -> Self {
        let (trouble, run) = (options.stage.trouble, &findings.run);
        let (planned, done) = (options.kills, run.done);
        let facts = ProofFacts {
            kills: [planned.server, done.server],
            // An emulator that pauses beyond all timeouts leaves as much in doubt as a killed one.
            emulator_kills: [planned.emulators + planned.stalls, done.emulators + done.stalls],
            troubles: [planned.troubles, done.troubles],
            has_wrong_dates: trouble == Some(Trouble::ClockJump),
            acceptance: run.acceptance.broken(trouble.is_some_and(Trouble::refuses)),
            ..facts_of(&findings)
        };
        Self::judged(findings, &facts, None)
    }

    /// Draws the conclusions of a campaign through a cluster.
    pub fn of_cluster(cluster: ClusterFacts, findings: DemoFindings) -> Self {
        let facts = facts_of(&findings);
        let facts = ProofFacts {
            kills: cluster.faults,
            emulator_kills: [cluster.unanswered; 2],
            max_unsettled: facts.max_unsettled * u64::from(cluster.nodes),
            acceptance: cluster.broken,
            ..facts
        };
        Self::judged(findings, &facts, None)
    }

    /// Draws the conclusions of a campaign over our own gateway with a planned number of kills of the server. `unconfirmed` counts the
    /// devices that had the message at a kill, without a receipt that is certain to be on disk.
    pub(super) fn of_gateway(
        kills: u32,
        unconfirmed: u64,
        figures: GatewayFigures,
        findings: DemoFindings,
    ) -> Self {
        let facts = ProofFacts {
            kills: [kills, findings.run.done.server],
            delivered: Some(findings.run.ledger.totals.delivered),
            unconfirmed_at_kills: Some(unconfirmed),
            // There is no second count of attempts: the gateway itself is the push service.
            emulator_attempts: findings.run.ledger.attempts,
            ..facts_of(&findings)
        };
        Self::judged(findings, &facts, Some(figures))
    }

    fn judged(findings: DemoFindings, facts: &ProofFacts, gateway: Option<GatewayFigures>) -> Self {
        let DemoFindings { devices, run, comparison, usage, import, limits } = findings;
        let (allowed_duplicates, broken) = (facts.allowed_duplicates(), facts.broken());
        Self { devices, run, comparison, usage, import, limits, allowed_duplicates, broken, gateway }
    }

    /// Returns true if the proof holds.
    pub fn holds(&self) -> bool {
        self.broken.is_empty()
    }

    /// Deliveries that a push service answered for good, per second of the campaign.
    pub fn pushes_per_second(&self) -> f64 {
        let LedgerTotals { accepted, rejected, .. } = self.run.ledger.totals;
        (accepted + rejected) as f64 / self.run.wall_seconds.max(1e-9)
    }

    /// Processor time of the campaign: servers, PostgreSQL and NATS, those of them that are the stage's own.
    pub fn processor_seconds(&self) -> f64 {
        let EngineSeconds { postgres, nats } = self.run.engine_seconds;
        self.run.cpu_seconds + postgres.unwrap_or(0.0) + nats.unwrap_or(0.0)
    }

    /// The same for a million deliveries that a push service answered for good; `None` where there were none.
    fn processor_seconds_per_million(&self) -> Option<f64> {
        let pushes = self.run.ledger.totals.accepted + self.run.ledger.totals.rejected;
        (pushes > 0).then(|| self.processor_seconds() * 1e6 / pushes as f64)
    }

    /// Devices that got it twice for each kill of the server; `None` without kills.
    pub fn duplicates_per_kill(&self) -> Option<f64> {
        let kills = self.run.done.server;
        (kills > 0).then(|| self.comparison.duplicates as f64 / f64::from(kills))
    }

    /// The report as one object; without times where the processor is emulated.
    pub fn object(&self) -> Value {
        let mut object = self.whole_object();
        let done = self.run.done;
        object["faults"] = done.all().into();
        object["nodes"] = self.run.nodes.iter().map(node_object).collect();
        object["processor_seconds"] = rounded(self.processor_seconds()).into();
        object["processor_seconds_per_million_pushes"] =
            self.processor_seconds_per_million().map(rounded).into();
        if !emulated::is_timed() {
            TIMED.iter().for_each(|field| object[field] = Value::Null);
            object["not_timed"] = NOT_TIMED.into();
        }
        object
    }

    fn whole_object(&self) -> Value {
        let (ledger, comparison, done) = (&self.run.ledger, &self.comparison, self.run.done);
        json!({
            "ok": self.holds(),
            "broken": self.broken,
            "devices": self.devices,
            "accepted": ledger.totals.accepted,
            "rejected": ledger.totals.rejected,
            "expired": ledger.totals.expired,
            "canceled": ledger.totals.canceled,
            "collapsed": ledger.totals.collapsed,
            "failed": ledger.totals.failed,
            "delivered": ledger.totals.delivered,
            "lost": comparison.lost,
            "disagreeing": comparison.disagreeing,
            "duplicates": comparison.duplicates,
            "unmarked_duplicates": comparison.unmarked_duplicates,
            "unanswered_duplicates": comparison.unanswered_duplicates,
            "duplicate_bound": self.duplicate_bound(),
            "ambiguous": ledger.ambiguous,
            "attempts": ledger.attempts,
            "ledger_balanced": self.run.is_balanced(),
            "stuck": self.run.stuck,
            "kills": done.server,
            "duplicates_per_kill": self.duplicates_per_kill().map(rounded),
            "emulator_kills": done.emulators,
            "stalls": done.stalls,
            "troubles": done.troubles,
            "inquiry": self.run.acceptance.object(),
            "wall_seconds": rounded(self.run.wall_seconds),
            "pushes_per_second": rounded(self.pushes_per_second()),
            "import_seconds": rounded(self.import.seconds),
            "server_cpu_seconds": rounded(self.run.cpu_seconds),
            "server_cpu_seconds_total": rounded(self.usage.cpu_seconds),
            "server_peak_rss_bytes": self.usage.peak_rss_bytes,
            "campaign_peak_rss_bytes": self.run.peak_rss_bytes,
            "import_cpu_seconds": self.import.usage.map(|usage| rounded(usage.cpu_seconds)),
            "postgres_cpu_seconds": self.run.engine_seconds.postgres.map(rounded),
            "nats_cpu_seconds": self.run.engine_seconds.nats.map(rounded),
            "import_peak_rss_bytes": self.import.usage.map(|usage| usage.peak_rss_bytes),
            "asked": comparison.asked,
            "limits": self.limits,
            "emulators": self.emulators_object(),
            "gateway": self.gateway.map(GatewayFigures::object),
        })
    }

    fn emulators_object(&self) -> Value {
        match self.gateway {
            Some(_) => Value::Null,
            None => {
                let counted =
                    |service: StagedService| (service.word().to_owned(), self.counted_object(service));
                Value::Object(self.services().into_iter().map(counted).collect())
            }
        }
    }

    /// Returns the bound of duplicates, without the unanswered requests of killed emulators.
    fn duplicate_bound(&self) -> u64 {
        match self.gateway {
            Some(_) => self.allowed_duplicates,
            None => self.run.ledger.duplicate_bound,
        }
    }

    fn counted_object(&self, service: StagedService) -> Value {
        let counted = self.counted(service);
        json!({
            "attempts": counted.attempts,
            "accepted": counted.accepted,
            "rejected": counted.rejected,
            "tokens_accepted": counted.tokens_accepted,
            "tokens_rejected": counted.tokens_rejected,
            "tokens_accepted_twice": counted.tokens_accepted_twice,
            "strangers": counted.strangers,
            "overflow": counted.overflow,
        })
    }

    /// Returns the push services whose emulators were counted, in the order of their table.
    pub fn services(&self) -> Vec<StagedService> {
        let counted = |service: &StagedService| self.comparison.counted.contains_key(service);
        StagedService::ALL.into_iter().filter(counted).collect()
    }

    /// Returns the counts of the emulator of a push service.
    pub fn counted(&self, service: StagedService) -> EmulatorCounts {
        self.comparison.counted.get(&service).copied().unwrap_or_default()
    }
}

impl GatewayFigures {
    fn object(self) -> Value {
        let Self { connected_max, connections, receptions } = self;
        json!({"connected_max_count": connected_max, "connections": connections, "receptions": receptions})
    }
}

fn node_object(figures: &NodeFigures) -> Value {
    let NodeFigures { cpu_seconds, peak_rss_bytes, attempts } = figures;
    json!({"server_cpu_seconds": rounded(*cpu_seconds), "campaign_peak_rss_bytes": peak_rss_bytes, "attempts": attempts})
}

/// Returns the facts that are read the same way from every campaign.
fn facts_of(DemoFindings { devices, run, comparison, limits, .. }: &DemoFindings) -> ProofFacts {
    let mut facts = ProofFacts {
        devices: *devices,
        audience: run.ledger.audience,
        totals: run.ledger.totals,
        state: run.ledger.state_text(),
        balanced: run.is_balanced(),
        stuck: run.stuck,
        duplicate_bound: run.ledger.duplicate_bound,
        max_unsettled: max_unsettled(limits),
        attempts: run.ledger.attempts,
        ..ProofFacts::default()
    };
    facts.compare(comparison);
    facts
}

/// Rounds to three decimals.
pub fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
