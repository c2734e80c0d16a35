//! One campaign to all devices of a stage, or of our own gateway, what is killed while it runs, and the proof of where every message went.

mod campaign;
mod comparison;
mod gateway;
mod histories;
mod kills;
mod options;
mod proof;
mod report;

use crate::emulated::elapsed_text;
use crate::import;
use crate::reporter::Reporter;
use crate::stage::Stage;
use crate::text::thousands;
pub use campaign::CampaignResult;
pub use comparison::{Comparison, EmulatorCounts};
pub use gateway::{GatewayDemoOptions, run_gateway};
pub use kills::Kills;
pub use options::DemoOptions;
use report::DemoFindings;
pub use report::{DemoReport, GatewayFigures, ImportCost, rounded};
use std::sync::Arc;
use std::time::Instant;

/// Plays it from beginning to end.
pub async fn run(options: &DemoOptions, reporter: &Arc<dyn Reporter>) -> anyhow::Result<DemoReport> {
    let (services, population) = (options.stage.services, options.devices());
    let mut stage = Stage::build(&options.stage, reporter).await?;
    let import_seconds = import::run(&stage.client, population, &**reporter).await?.as_secs_f64();
    let import_usage = if services.are_sinks() { Some(stage.server.restart().await?) } else { None };
    let run = campaign::run(options, &mut stage, &**reporter).await?;
    stage.emulators.stop();
    let compared = Instant::now();
    let comparison =
        comparison::run(services.answers(), &stage, population, &run.ledger, &**reporter).await?;
    reporter.line(&format!(
        "comparison: {} tokens{}, the ledger asked about {}",
        thousands(population.devices()),
        elapsed_text(" in ", compared.elapsed()),
        thousands(comparison.asked)
    ));
    stage.others.stop();
    let usage = stage.server.stop();
    let import = ImportCost { seconds: import_seconds, usage: import_usage };
    let limits = stage.server.limits()?;
    let devices = population.devices();
    Ok(DemoReport::new(options, DemoFindings { devices, run, comparison, usage, import, limits }))
}
