//! The effect of bad answers to a share of the deliveries on the others.

mod case;
mod setting;

pub(crate) use case::{BadAnswer, Persistence, TroubleCase, TroubleCell};
use serde_json::{Value, json};
use setting::CellStage;
use std::sync::Arc;
use std::time::Duration;
use stentor_stage::reporter::Reporter;

/// Options of the bench.
#[derive(Clone, Debug)]
pub(crate) struct TroubleOptions {
    /// The cells, in their order.
    pub(crate) cases: Vec<TroubleCase>,
    /// Devices of each campaign.
    pub(crate) devices: u64,
    /// Longest wait of a cell for the good deliveries, and for all of them if many get bad answers.
    pub(crate) cell_limit: Duration,
}

/// Results of the bench.
pub(crate) struct TroubleReport {
    devices: u64,
    /// The cells, in their order.
    pub(crate) cells: Vec<TroubleCell>,
}

/// Runs the bench; `describe` is the function that formats a cell as a line.
pub(crate) async fn run(
    options: &TroubleOptions,
    describe: fn(&TroubleCell) -> String,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<TroubleReport> {
    let mut progress = reporter.begin("trouble", options.cases.len() as u64);
    let mut cells = Vec::new();
    for case in &options.cases {
        let stage = CellStage::build(case.service, options.devices, options.cell_limit, reporter).await?;
        let measured = stage.measure(*case).await?;
        reporter.line(&describe(&measured));
        cells.push(measured);
        progress.update_with(cells.len() as u64, &case.words().join(" "));
    }
    progress.finish(cells.len() as u64);
    Ok(TroubleReport { devices: options.devices, cells })
}

impl TroubleReport {
    /// Returns true if every cell holds.
    pub(crate) fn holds(&self) -> bool {
        self.cells.iter().all(TroubleCell::holds)
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let cells: Vec<Value> = self.cells.iter().map(TroubleCell::object).collect();
        json!({"cells": cells, "devices": self.devices, "ok": self.holds()})
    }
}
