//! The tables of a report, shared by all formats.

use std::collections::BTreeMap;

use super::columns::{figure, mean_text, metric_text, number_text};
use super::effects::designs;
use super::metric::captured;
use super::ratios::place;
use super::verdicts::ClaimFindings;
use super::{Account, MeasuredCell, Results, campaigns, joined, paper};
use crate::claims::ClaimVerdict;
use crate::document::TextTable;
use crate::plot::short;
use crate::record::ForkRecord;
use stentor_machine::emulation::NOT_TIMED;

/// Letters of the date in a timestamp.
const DATE_LETTERS: usize = 10;
/// Facts of the machine that records of older versions do not have.
const MODEL: &str = "processor model";
const HYPERVISOR: &str = "hypervisor";
const STEAL: &str = "steal time of a fork, at most";
const LATE_PAGES: &str = "memory taken by the host in a fork, at most";
const COMPILER: &str = "compiler";
/// Bytes of a gibibyte.
const GIB: f64 = 1_073_741_824.0;

/// Orders claims: first those that our verdict or the paper's own tables contradict, last those that measurements cannot judge.
pub(super) fn ordered(account: &Account) -> Vec<&ClaimFindings> {
    let rank = |one: &&ClaimFindings| {
        let ours = one.best().verdict;
        match (one.judged.published.verdict, ours) {
            (_, ClaimVerdict::DoesNotHold) => 0,
            (ClaimVerdict::DoesNotHold, ClaimVerdict::Holds) => 1,
            (ClaimVerdict::DoesNotHold, _) => 2,
            (_, ClaimVerdict::Holds) => 3,
            (_, ClaimVerdict::Undecided) => 4,
            (_, ClaimVerdict::SetByExperiment) => 5,
            (_, ClaimVerdict::NotTestable) => 6,
        }
    };
    let mut claims: Vec<&ClaimFindings> =
        account.verdicts.iter().flat_map(|verdicts| &verdicts.claims).collect();
    claims.sort_by_key(rank);
    claims
}

/// The number of each verdict by the paper's own data, and by every column of measurements of the run and of those beside it.
pub(super) fn tally(account: &Account) -> TextTable {
    let claims = ordered(account);
    if claims.is_empty() {
        return TextTable::default();
    }
    let own = counts("the paper's own data".to_owned(), &claims, &|one| one.judged.published.verdict);
    let mut rows = vec![own];
    rows.extend(tally_rows(account, ""));
    rows.extend(account.beside.iter().flat_map(|(title, account)| tally_rows(account, title)));
    let header = std::iter::once(format!("verdicts on {} claims", claims.len()));
    TextTable { header: header.chain(ClaimVerdict::ALL.map(|one| one.word().to_owned())).collect(), rows }
}

/// Counts the verdicts of each column that ran.
fn tally_rows(account: &Account, run: &str) -> Vec<Vec<String>> {
    let claims = ordered(account);
    let Some(first) = claims.first() else { return Vec::new() };
    let mut rows = Vec::new();
    for (period, software) in columns(account) {
        for (place, (setting, _)) in first.at_each_setting(period).into_iter().enumerate() {
            let finding = |one: &ClaimFindings| one.at_each_setting(period)[place].1.clone();
            if claims.iter().any(|one| finding(one).judgment.is_some()) {
                let name = super::joined(&[software, setting, run], ", ");
                rows.push(counts(name, &claims, &|one| finding(one).verdict));
            }
        }
    }
    rows
}

/// Returns a row with the number of each verdict.
fn counts(
    name: String,
    claims: &[&ClaimFindings],
    verdict: &dyn Fn(&ClaimFindings) -> ClaimVerdict,
) -> Vec<String> {
    let count = |wanted: ClaimVerdict| claims.iter().filter(|one| verdict(one) == wanted).count();
    std::iter::once(name).chain(ClaimVerdict::ALL.map(|wanted| count(wanted).to_string())).collect()
}

/// The columns of measurements: whether they are of the period's software, and their headings.
pub(super) fn columns(account: &Account) -> Vec<(bool, &'static str)> {
    if account.results.is_of_campaigns() {
        return vec![(true, campaigns::MEASURED)];
    }
    vec![(true, "measured: period software"), (false, "measured: today's software")]
}

/// Formats a quantile of the duration of all exchanges.
fn quantile_text(cell: &MeasuredCell, part: f64) -> String {
    cell.quantile_ms(part).map_or_else(|| "–".to_owned(), |one| figure(one.value, Some((one.low, one.high))))
}

/// The table of cells; those of campaigns have other tables.
pub(super) fn cells(results: &Results) -> TextTable {
    if results.is_of_campaigns() {
        return TextTable::default();
    }
    TextTable::of(
        &results.cells,
        &[
            ("part", &|cell| joined(&[&cell.experiment, &cell.variant], ", ")),
            ("cell", &|cell| place(results, cell)),
            ("subject", &|cell| cell.name.clone()),
            ("forks", &|cell| match cell.invalid {
                0 => cell.forks.len().to_string(),
                invalid => format!("{} (and {invalid} that do not count)", cell.forks.len()),
            }),
            ("median ms [95 %]", &median_text),
            ("p95 ms [95 %]", &|cell| quantile_text(cell, 0.95)),
            ("p99 ms [95 %]", &|cell| quantile_text(cell, 0.99)),
            ("first call ms", &|cell| mean_text(cell.metric("first_call"))),
            ("published ms", &|cell| number_text(paper::published_ms(results, cell))),
            ("bytes", &|cell| mean_text(cell.metric("bytes_wire"))),
            ("client CPU ms", &|cell| mean_text(cell.metric("client_cpu"))),
            ("server CPU ms", &|cell| mean_text(cell.metric("server_cpu"))),
        ],
    )
}

fn median_text(cell: &MeasuredCell) -> String {
    let time = if cell.is_untimed() { "not timed".to_owned() } else { metric_text(cell, "rtt_p50") };
    let time = match cell.unsettled() {
        (0, _) => time,
        (unsettled, all) => format!("{time} ({unsettled} of {all} forks did not settle)"),
    };
    cell.outcome().map_or_else(|| time.clone(), |outcome| format!("{time} {outcome}"))
}

/// The effects of each design: a heading and a table.
pub(super) fn effects(results: &Results) -> Vec<(String, TextTable)> {
    let table = |design: &super::Design| {
        let mut rows: Vec<[String; 4]> = design
            .effects
            .effects
            .iter()
            .map(|effect| {
                let factor = |log: f64| format!("×{}", short((2.0 * log).exp()));
                let interval = effect.low.zip(effect.high);
                let interval = interval.map(|(low, high)| format!("{} to {}", factor(low), factor(high)));
                let sure = if effect.is_sure() { "" } else { " (may be none)" };
                [
                    effect.name.clone(),
                    format!("{:.1} %", 100.0 * effect.share),
                    format!("{}{sure}", factor(effect.effect)),
                    interval.unwrap_or_else(|| "–".to_owned()),
                ]
            })
            .collect();
        rows.sort_by(|one, other| share(&other[1]).total_cmp(&share(&one[1])));
        rows.push([
            "runs of the same cell".into(),
            format!("{:.1} %", 100.0 * design.effects.error_share),
            String::new(),
            String::new(),
        ]);
        let levels: Vec<String> =
            design.factors.iter().map(|(name, [low, high])| format!("{name}: {low} → {high}")).collect();
        let title = format!("{} ({}; {} forks)", design.name, levels.join(", "), design.forks);
        let header = ["factor", "share of the variation", "from low to high", "95 % interval"];
        (title, TextTable::new(header, rows))
    };
    designs(results).iter().map(table).collect()
}

fn share(text: &str) -> f64 {
    text.trim_end_matches(" %").parse().unwrap_or_default()
}

/// The table of invalid forks.
pub(super) fn uncounted(results: &Results) -> TextTable {
    let levels = |record: &ForkRecord| {
        record.cell.iter().map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", ")
    };
    TextTable::of(
        results.uncounted(),
        &[
            ("subject", &|record| match record.campaign {
                Some(_) => record.experiment.clone(),
                None => record.subject.label.clone(),
            }),
            ("cell", &levels),
            ("fork", &|record| format!("{}, attempt {}", record.fork, record.attempt)),
            ("why it does not count", &|record| match record.invalid_reason.as_str() {
                "" => "no reason is recorded".to_owned(),
                reason => reason.to_owned(),
            }),
        ],
    )
}

/// The table of parts that were not tested here, with the reasons.
pub(super) fn not_here(account: &Account) -> TextTable {
    let mut rows: Vec<[String; 2]> =
        account.remarks.not_here.iter().map(|(what, why)| [what.clone(), why.clone()]).collect();
    let results = &account.results;
    if results.is_of_campaigns() {
        return TextTable::new(["what", "why it was not tested here"], rows);
    }
    let all = || results.cells.iter().flat_map(|cell| &cell.forks);
    let mut add = |is_missing: bool, what: &str, why: &str| {
        if is_missing {
            rows.push([what.to_owned(), why.to_owned()]);
        }
    };
    add(
        all().all(|fork| captured(fork).is_none()),
        "bytes on the wire",
        "no frames were captured: that needs a link of its own between the two sides (stentor lab doctor)",
    );
    let is_untimed = results.is_untimed();
    add(is_untimed, "times, processor time, memory, energy", NOT_TIMED);
    add(
        !is_untimed && all().all(|fork| fork.energy.is_empty()),
        "energy",
        "this machine has no meter, and no model was requested",
    );
    add(
        !is_untimed && all().all(|fork| fork.cpu.client.or(fork.cpu.server).is_none()),
        "processor time",
        "it was not counted",
    );
    add(
        results.cells.iter().all(|cell| !cell.is_period()),
        "the paper's own software",
        "its subjects are not built here, so no verdict speaks for the paper (stentor lab subject build)",
    );
    TextTable::new(["what", "why it was not tested here"], rows)
}

/// The table of machine, link and software.
pub(super) fn environment(account: &Account) -> TextTable {
    let results = &account.results;
    let mut facts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for record in &results.records {
        for (name, value) in provenance(record) {
            let values = facts.entry(name).or_default();
            if !value.is_empty() && !values.contains(&value) {
                values.push(value);
            }
        }
    }
    let loads = results.records.iter().flat_map(|record| [record.env.load_before, record.env.load_after]);
    let load = loads.fold(0.0, f64::max);
    facts.insert("load average, at most", vec![short(load)]);
    let stolen = results.records.iter().filter_map(|record| record.instrument.steal_percent).reduce(f64::max);
    facts.insert(STEAL, stolen.map(|percent| format!("{} %", short(percent))).into_iter().collect());
    let late =
        results.records.iter().filter_map(|record| record.instrument.late_pages_percent).reduce(f64::max);
    facts.insert(LATE_PAGES, late.map(|percent| format!("{} %", short(percent))).into_iter().collect());
    for name in [MODEL, HYPERVISOR, STEAL, COMPILER] {
        let values = facts.entry(name).or_default();
        if values.is_empty() {
            values.push("not recorded".to_owned());
        }
    }
    let rows = facts.into_iter().filter(|(_, values)| !values.is_empty());
    let rows = rows.map(|(name, values)| [name.to_owned(), values.join("; ")]);
    let provenance_rows = account.remarks.provenance.as_object().into_iter().flatten();
    let provenance_rows = provenance_rows.map(|(name, value)| {
        [name.replace('_', " "), value.as_str().map_or_else(|| value.to_string(), str::to_owned)]
    });
    TextTable::new(["what", "value"], rows.chain(provenance_rows))
}

fn provenance(record: &ForkRecord) -> Vec<(&'static str, String)> {
    let env = &record.env;
    let memory = if env.memory_bytes > 0 {
        format!("{} GiB", short(env.memory_bytes as f64 / GIB))
    } else {
        String::new()
    };
    let lateness = |quantiles: crate::record::Quantiles| quantiles.p99;
    let mut facts = vec![
        ("date", record.ended.chars().take(DATE_LETTERS).collect()),
        ("processor", format!("{} × {}", env.cores, env.cpu)),
        (MODEL, env.cpu_model.clone()),
        (HYPERVISOR, env.hypervisor.clone()),
        (COMPILER, env.compiler.clone()),
        ("emulated processor", env.emulated.clone()),
        ("memory", memory),
        ("kernel", env.kernel.clone()),
        ("governor", env.governor.clone()),
        ("idle processors", env.idle.clone()),
        ("between the sides", env.rig.clone()),
        ("link", record.link.profile.clone()),
        ("limits by cgroup", env.cgroup.clone()),
        (
            "laboratory",
            format!(
                "stentor {}{}{}",
                env.tool_version,
                if env.commit.is_empty() { String::new() } else { format!(", commit {}", env.commit) },
                if env.optimized { "" } else { ", a build without optimizations" }
            ),
        ),
    ];
    let late = record.link.lateness_us.map(lateness);
    facts.push(("clock", record.clock.as_ref().map(|clock| clock.method.clone()).unwrap_or_default()));
    facts.push((
        "link was late (p99)",
        late.map(
            |us| if us < 1000.0 { "below 1 ms".to_owned() } else { "above 1 ms in some forks".to_owned() },
        )
        .unwrap_or_default(),
    ));
    facts
}

/// The table of software versions of each subject.
pub(super) fn software(results: &Results) -> TextTable {
    let mut rows: BTreeMap<String, [String; 4]> = BTreeMap::new();
    for record in &results.records {
        let subject = &record.subject;
        let versions: Vec<String> =
            subject.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let sides = if subject.client == subject.server {
            subject.client.clone()
        } else {
            format!("{} to {}", subject.client, subject.server)
        };
        let row = [subject.label.clone(), subject.stack.clone(), sides, versions.join(", ")];
        rows.insert(row.join("|"), row);
    }
    TextTable::new(["subject", "software", "client and server", "versions"], rows.into_values())
}
