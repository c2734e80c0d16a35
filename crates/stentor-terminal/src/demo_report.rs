//! The report at the end of the demo: counted numbers only, and whether the proof holds.

use crate::ledger::{self, ProviderBooks};
use crate::output::{ledger as table, thousands};
use stentor_machine::emulation::NOT_TIMED;
use stentor_stage::demo::{DemoReport, GatewayFigures};
use stentor_stage::devices::StagedService;
use stentor_stage::emulated;

/// Formats a report as tables and sentences.
pub fn describe(report: &DemoReport) -> String {
    let sides = report.gateway.map_or_else(|| side_by_side(report), of_the_devices);
    let mut parts = vec![ledger::describe(&report.run.ledger), sides, figures(report)];
    if !report.comparison.examples.is_empty() {
        parts.push(format!("for example\n  {}", report.comparison.examples.join("\n  ")));
    }
    parts.push(verdict(report));
    parts.join("\n\n")
}

fn side_by_side(report: &DemoReport) -> String {
    let header = [
        "",
        "accepted: ledger",
        "emulator",
        "refused: ledger",
        "emulator",
        "attempts: ledger",
        "emulator",
        "twice",
    ];
    let rows = report.services().into_iter().map(|service| {
        let (books, counted) = (books(report, service), report.counted(service));
        let numbers = [
            books.totals.accepted,
            counted.tokens_accepted,
            books.totals.rejected,
            counted.tokens_rejected,
            books.attempts,
            counted.attempts,
            counted.tokens_accepted_twice,
        ];
        let [a, b, c, d, e, f, g] = numbers.map(thousands);
        [service.word().to_owned(), a, b, c, d, e, f, g]
    });
    format!(
        "the ledger beside the emulators' own counts (tokens; attempts are requests)\n\n{}",
        table(header, rows)
    )
}

fn of_the_devices(figures: GatewayFigures) -> String {
    let GatewayFigures { connected_max, connections, receptions } = figures;
    format!(
        "the devices' own counts: {} messages through {} connections, at most {} at once",
        thousands(receptions),
        thousands(connections),
        thousands(connected_max)
    )
}

fn books(report: &DemoReport, service: StagedService) -> ProviderBooks {
    let books = report.run.ledger.providers.iter().find(|books| books.provider == service.word());
    books.cloned().unwrap_or_default()
}

fn figures(report: &DemoReport) -> String {
    let (run, done) = (&report.run, report.run.done);
    let mut lines = if emulated::is_timed() { times(report) } else { vec![NOT_TIMED.to_owned()] };
    if done.server + done.emulators > 0 {
        lines.push(kills(report));
    }
    if let Some(duplicates) = report.duplicates_per_kill().filter(|_| done.emulators == 0) {
        lines.push(format!("doubled   {} devices for each kill of the server", thousands(duplicates as u64)));
    }
    if done.stalls > 0 {
        lines.push(format!("stopped   emulators {} times", done.stalls));
    }
    if done.troubles > 0 {
        lines.push(format!(
            "trouble   {} times below the server; of {} messages during it the server kept {} and refused {}",
            done.troubles,
            run.acceptance.kept() + run.acceptance.refused(),
            run.acceptance.kept(),
            run.acceptance.refused()
        ));
    }
    lines.join("\n")
}

fn kills(report: &DemoReport) -> String {
    let done = report.run.done;
    match report.gateway {
        Some(_) => format!("kills     server {}", done.server),
        None => format!("kills     server {}, emulators {}", done.server, done.emulators),
    }
}

fn times(report: &DemoReport) -> Vec<String> {
    let (run, usage) = (&report.run, report.usage);
    let mut lines = vec![
        format!("import    {} devices in {:.2} s", thousands(report.devices), report.import.seconds),
        format!(
            "campaign  {:.2} s from the 202 to the {}, {} pushes/s",
            run.wall_seconds,
            if report.gateway.is_some() { "last receipt" } else { "settled ledger" },
            thousands(report.pushes_per_second() as u64)
        ),
        format!(
            "server    {:.2} CPU s for the campaign ({:.2} in all), at most {} MiB resident",
            run.cpu_seconds,
            usage.cpu_seconds,
            thousands(usage.peak_rss_bytes >> 20)
        ),
    ];
    lines.extend(beside(report));
    lines
}

/// Returns the processor time of several servers and of their engines, if there are any.
fn beside(report: &DemoReport) -> Option<String> {
    let (nodes, engines) = (&report.run.nodes, report.run.engine_seconds);
    let each = nodes.iter().map(|node| format!("{:.2}", node.cpu_seconds)).collect::<Vec<_>>().join(" + ");
    let of = |name: &str, seconds: Option<f64>| seconds.map(|seconds| format!(", {name} {seconds:.2}"));
    let others = [of("PostgreSQL", engines.postgres), of("nats-server", engines.nats)].into_iter().flatten();
    let others: String = others.collect();
    (nodes.len() > 1 || !others.is_empty())
        .then(|| format!("each      {each}{others}: {:.2} CPU s in all", report.processor_seconds()))
}

fn verdict(report: &DemoReport) -> String {
    if !report.holds() {
        return format!("THE PROOF DOES NOT HOLD: {}", report.broken.join("; "));
    }
    if report.gateway.is_some() {
        return format!(
            "each of {} devices got the message and the ledger has its receipt: 0 lost, 0 stuck, {} duplicates, each known by its \
             id (at most {} were possible)",
            thousands(report.devices),
            thousands(report.comparison.duplicates),
            thousands(report.allowed_duplicates)
        );
    }
    format!(
        "ledger and emulators agree for every one of {} tokens: 0 lost, 0 stuck, {} duplicates (at most {} were possible)",
        thousands(report.devices),
        thousands(report.comparison.duplicates),
        thousands(report.allowed_duplicates)
    )
}
