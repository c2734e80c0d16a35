//! The report at the end of a run over a cluster.

use super::controlled::ControlledFindings;
use super::fault::FaultKind;
use super::gateway_devices::GatewayFindings;
use super::traffic::TrafficFindings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use stentor_stage::demo::{DemoReport, rounded};

/// An injected fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultRecord {
    /// Kind of the fault.
    pub(crate) kind: FaultKind,
    /// Time from the end of the fault until every server had accepted a message.
    pub(crate) recovery: Duration,
}

/// All findings.
pub(crate) struct ClusterReport {
    /// The campaign, and the verdict on the whole run.
    pub(crate) campaign: DemoReport,
    /// Imports and messages beside the campaign.
    pub(crate) beside: TrafficFindings,
    /// Campaigns beside it that were scheduled, paused and canceled.
    pub(crate) controlled: ControlledFindings,
    /// Findings at devices of the gateway; `None` without such devices.
    pub(crate) gateway: Option<GatewayFindings>,
    /// The faults, in their order.
    pub(crate) records: Vec<FaultRecord>,
    /// Kinds of faults that this machine or setting does not allow, with the reason.
    pub(crate) skipped: Vec<(FaultKind, &'static str)>,
}

impl ClusterReport {
    /// Returns true if the proof holds.
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

    /// Returns the report as one object, with the losses and duplicates of the campaign and of the tasks beside it together.
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
