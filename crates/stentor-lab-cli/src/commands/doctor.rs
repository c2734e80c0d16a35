//! `stentor lab doctor`: the abilities of this machine for measurements, and missing programs.

use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::energy::measured;
use stentor_lab::runner::gate::ValidityLimits;
use stentor_lab::runner::rigged::Rigged;
use stentor_lab::runner::testbed::Testbed;
use stentor_lab::runner::{environment, late_pages_percent};
use stentor_lab::subject::catalogue;
use stentor_lab::subject::needs::Probes;
use stentor_terminal::output::{Output, table};

/// Smallest number of processors that can separate the instrument from the measured processes.
const CORES_FEW: u32 = 4;

/// Show the abilities of this machine: links, limits, energy, subjects
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab doctor
  stentor lab doctor --json

Nothing is installed and nothing is changed. Exits 0 also if something is missing.")]
pub(crate) struct LabDoctorArgs {
    /// Folder of definitions of subjects; otherwise `lab/subjects` here, above, or above this program
    #[arg(long, value_name = "DIR")]
    subjects: Option<PathBuf>,
}

/// One finding about the machine.
struct MachineFinding {
    what: String,
    is_good: bool,
    detail: String,
}

impl MachineFinding {
    fn of(what: &str, is_good: bool, detail: impl Into<String>) -> Self {
        Self { what: what.to_owned(), is_good, detail: detail.into() }
    }
}

impl LabDoctorArgs {
    /// Examines the machine and prints the findings.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let rig = Rigged::try_out("lan", "lan")?;
        let level = rig.as_ref().map_or("loopback", |rig| rig.level());
        let mut findings = rigs(rig.as_ref());
        findings.extend(machine(level, rig.as_ref().map_or("", |rig| rig.idle())));
        findings.push(energy());
        findings.extend(self.subjects()?);
        let object =
            |one: &MachineFinding| json!({ "what": one.what, "ok": one.is_good, "told": one.detail });
        let objects: Vec<Value> = findings.iter().map(object).collect();
        let missing = findings.iter().filter(|one| !one.is_good).count();
        output.result(&json!({ "rig": level, "findings": objects, "missing": missing }), || {
            let rows = findings.iter().map(|one| {
                let sign = if one.is_good { "yes" } else { "no" };
                [one.what.clone(), sign.to_owned(), one.detail.clone()]
            });
            table(["what", "here", ""], rows)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn subjects(&self) -> anyhow::Result<Vec<MachineFinding>> {
        let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
        let places = here.iter().chain(&program).map(PathBuf::as_path);
        let Some(folder) = self.subjects.clone().or_else(|| catalogue::folder(places)) else {
            let detail =
                format!("no folder {}: only our own subjects; name one with --subjects", catalogue::FOLDER);
            return Ok(vec![MachineFinding::of("foreign subjects", false, detail)]);
        };
        let mut probes = Probes::default();
        let findings = catalogue::read(&folder)?.into_iter().map(|entry| {
            let readiness = entry.readiness(&mut probes);
            let missing: Vec<String> = readiness
                .missing
                .iter()
                .chain(&readiness.missing_to_build)
                .map(ToString::to_string)
                .collect();
            let id = &entry.definition.id;
            let detail = match (readiness.can_run(), missing.is_empty()) {
                (true, _) => "can run".to_owned(),
                (false, true) => format!("not built: stentor lab subject build {id}"),
                (false, false) => format!("missing: {}", missing.join("; ")),
            };
            MachineFinding::of(&format!("subject {id}"), readiness.can_run(), detail)
        });
        Ok(findings.collect())
    }
}

/// Returns findings about the rig, with its limits.
fn rigs(rig: Option<&Rigged>) -> Vec<MachineFinding> {
    let Some(rig) = rig else { return Vec::new() };
    let level = rig.level_of();
    let mut findings = vec![MachineFinding::of("link emulation", level.shapes(), format!("rig {level}"))];
    findings.extend(rig.notes().iter().map(|text| MachineFinding::of("rig", false, text)));
    findings.extend(
        level
            .cannot_test()
            .iter()
            .map(|what| MachineFinding::of("rig", false, format!("cannot test {what}"))),
    );
    let group = rig.cgroup();
    let detail = if group.is_empty() {
        "no control groups: limits of processor and memory cannot be set; run as root".to_owned()
    } else {
        format!("control groups {group}")
    };
    findings.push(MachineFinding::of("limits of processor and memory", !group.is_empty(), detail));
    findings
}

fn machine(level: &str, idle: &str) -> Vec<MachineFinding> {
    let env = environment(level, "", idle, "");
    let is_governed = env.governor.is_empty() || env.governor == "performance";
    let governor = if env.governor.is_empty() { "unknown".to_owned() } else { env.governor.clone() };
    let cores = if env.cores < CORES_FEW {
        format!(
            "{} cores: halves and instrument share them; forks with late frames or wake-ups do not count",
            env.cores
        )
    } else {
        format!("{} cores", env.cores)
    };
    let optimized = "this is a debug build, and its own subjects are slower: cargo build --release";
    vec![
        MachineFinding::of("processors", env.cores >= CORES_FEW, cores),
        MachineFinding::of("clock rate", is_governed, format!("governor {governor}")),
        MachineFinding::of(
            "load",
            env.load_before < f64::from(env.cores),
            format!(
                "{} over a minute; above {} forks do not count (lab run --gate-load): measure when it is below {}",
                env.load_before,
                ValidityLimits::default().load_per_core_max * f64::from(env.cores),
                env.cores
            ),
        ),
        memory(late_pages_percent()),
        MachineFinding::of(
            "idle processors",
            !env.idle.is_empty(),
            if env.idle.is_empty() { "may halt, and wake late" } else { "kept awake while a study runs" },
        ),
        MachineFinding::of(
            "times",
            env.emulated.is_empty(),
            if env.emulated.is_empty() {
                "nothing speaks for an emulated processor".to_owned()
            } else {
                format!("this processor is emulated ({}): nothing is timed here", env.emulated)
            },
        ),
        MachineFinding::of("optimized build", env.optimized, if env.optimized { "yes" } else { optimized }),
    ]
}

fn memory(late_percent: Option<f64>) -> MachineFinding {
    const WHAT: &str = "memory taken by the host";
    let Some(late_percent) = late_percent else {
        return MachineFinding::of(WHAT, false, "cannot be measured: no file in memory could be made");
    };
    let most = ValidityLimits::default().late_pages_percent_max;
    let detail = format!(
        "{late_percent:.1} % of touched pages came back late; above {most} % forks do not count (lab run --gate-pages): measure in another \
         hour, on another machine, or beside memory that rests (docs/lab/studies.md)"
    );
    MachineFinding::of(WHAT, late_percent <= most, detail)
}

fn energy() -> MachineFinding {
    let (sensors, unusable) = measured::find(Path::new("/sys"));
    if sensors.is_empty() {
        let more =
            if unusable.is_empty() { String::new() } else { format!("; {} cannot be read", unusable.len()) };
        let detail = format!(
            "no powercap and no power supply to read{more}: energy is modelled, or imported from a meter"
        );
        return MachineFinding::of("measured energy", false, detail);
    }
    MachineFinding::of("measured energy", true, format!("{} sensors", sensors.len()))
}
