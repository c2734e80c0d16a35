//! What a run over a cluster says at its end.

use super::controlled::ControlledFindings;
use super::fault::FaultKind;
use super::gateway_devices::GatewayFindings;
use super::traffic::TrafficFindings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use stentor_stage::demo::{DemoReport, rounded};

/// A fault that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultRecord {
    /// What it was.
    pub(crate) kind: FaultKind,
    /// How long it then took until every server had taken a message.
    pub(crate) recovery: Duration,
}

/// Everything that was found.
pub(crate) struct ClusterReport {
    /// The campaign, and whether all holds.
    pub(crate) campaign: DemoReport,
    /// What went on beside it.
    pub(crate) beside: TrafficFindings,
    /// Campaigns beside it that were put off, paused and canceled.
    pub(crate) controlled: ControlledFindings,
    /// What became of devices of the gateway; `None` where there were none.
    pub(crate) gateway: Option<GatewayFindings>,
    /// The faults, in their order.
    pub(crate) records: Vec<FaultRecord>,
    /// Kinds that could not be made here, and why.
    pub(crate) skipped: Vec<(FaultKind, &'static str)>,
}

impl ClusterReport {
    /// Returns whether the proof holds.
    pub(crate) fn holds(&self) -> bool {
        self.campaign.holds()
    }

    /// Counts the faults of each kind, with the longest recovery of each in seconds.
    pub(crate) fn by_kind(&self) -> BTreeMap<&'static str, (u32, f64)> {
        let mut kinds = BTreeMap::new();
        for record in &self.records {
            let (count, slowest): &mut (u32, f64) = kinds.entry(record.kind.word()).or_default();
            *count += 1;
            *slowest = slowest.max(record.recovery.as_secs_f64());
        }
        kinds
    }

    /// The report as one object: what the campaign and what is beside it lost, and repeated, together.
    pub(crate) fn object(&self) -> Value {
        let (mut object, beside, controlled) = (self.campaign.object(), &self.beside, &self.controlled);
        let [gateway_lost, gateway_stuck] =
            self.gateway.as_ref().map_or([0; 2], |gateway| [gateway.lost, gateway.stuck]);
        object["ledger_duplicate_bound"] = object["duplicate_bound"].take();
        object["duplicate_bound"] = self.campaign.allowed_duplicates.into();
        let parts = [
            ("lost", beside.lost + controlled.lost + gateway_lost),
            ("stuck", beside.stuck + controlled.stuck + gateway_stuck),
            ("duplicates", beside.duplicates + controlled.duplicates),
            ("duplicate_bound", beside.duplicate_bound + controlled.duplicate_bound),
        ];
        for (field, count) in parts {
            object[field] = (object[field].as_u64().unwrap_or_default() + count).into();
        }
        let kinds = self.by_kind();
        let counts: BTreeMap<_, _> = kinds.iter().map(|(kind, (count, _))| (*kind, *count)).collect();
        let recoveries: BTreeMap<_, _> =
            kinds.iter().map(|(kind, (_, slowest))| (*kind, rounded(*slowest))).collect();
        let skipped: BTreeMap<_, _> = self.skipped.iter().map(|(kind, why)| (kind.word(), *why)).collect();
        object["faults"] = self.records.len().into();
        object["faults_by_kind"] = json!(counts);
        object["recovery_seconds"] = json!(recoveries);
        object["skipped"] = json!(skipped);
        object["beside"] = beside.object();
        object["controlled"] = controlled.object();
        object["gateway_devices"] = json!(self.gateway.as_ref().map(GatewayFindings::object));
        object
    }
}
