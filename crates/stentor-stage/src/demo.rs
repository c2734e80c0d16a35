//! One campaign to all devices of a stage, or of our own gateway; the kills while it runs; and the proof of every message's outcome.

mod campaign;
pub mod comparison;
mod gateway;
mod histories;
mod kills;
mod options;
mod proof;
mod report;

use crate::devices::DevicePopulation;
use crate::emulated::elapsed_text;
use crate::import;
use crate::reporter::Reporter;
use crate::stage::Stage;
use crate::text::thousands;
pub use campaign::CampaignResult;
use comparison::ComparedCampaign;
pub use comparison::{Comparison, EmulatorCounts};
pub use gateway::{GatewayDemoOptions, run_gateway};
pub use kills::Kills;
pub use options::DemoOptions;
pub use report::{ClusterFacts, DemoFindings};
pub use report::{DemoReport, GatewayFigures, ImportCost, rounded};
use std::sync::Arc;
use std::time::Instant;

/// Plays it from beginning to end.
pub async fn run(options: &DemoOptions, reporter: &Arc<dyn Reporter>) -> anyhow::Result<DemoReport> {
    let (services, population) = (options.stage.services, options.devices());
    let mut stage = Stage::build(&options.stage, reporter).await?;
    let origins = stage.emulators.origins(options.stage.seed)?;
    let import_time = import::run_at(&stage.client, population, origins, &**reporter).await?;
    let import_usage = if services.are_sinks() { Some(stage.restart().await?) } else { None };
    let run = campaign::run(options, &mut stage, &**reporter).await?;
    stage.emulators.stop();
    let begun = Instant::now();
    let compared = ComparedCampaign {
        policy: services.answers(),
        emulators: &stage.emulators,
        client: &stage.client,
        population,
        others: DevicePopulation::new(0, 0),
        ledger: &run.ledger,
    };
    let comparison = comparison::run(compared, &**reporter).await?;
    reporter.line(&format!(
        "comparison: {} tokens{}, the ledger queried about {}",
        thousands(population.devices()),
        elapsed_text(" in ", begun.elapsed()),
        thousands(comparison.asked)
    ));
    let usage = stage.stop();
    let import = ImportCost { seconds: import_time.as_secs_f64(), usage: import_usage };
    let limits = stage.server.limits()?;
    let devices = population.devices();
    Ok(DemoReport::new(options, DemoFindings { devices, run, comparison, usage, import, limits }))
}
