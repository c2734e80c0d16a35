//! `stentor lab link show`: the profiles of links, and their availability on this machine.

use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;
use stentor_rig::link::{PROFILES, Profile};
use stentor_rig::{Link, Plan, Rig, RigLevel, Wanted};
use stentor_terminal::output::{Output, table};

/// Show the profiles with their sources, and the levels that this machine allows
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab link show
  stentor lab link show --json")]
pub(super) struct ShowArgs {}

impl ShowArgs {
    pub(super) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let levels: Vec<TriedLevel> = RigLevel::ALL.iter().map(|level| TriedLevel::of(*level)).collect();
        let object = json!({
            "profiles": PROFILES.iter().map(object).collect::<Vec<_>>(),
            "levels": levels.iter().map(TriedLevel::object).collect::<Vec<_>>(),
        });
        output.result(&object, || text(&levels))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A level, and the reason if it is not available on this machine.
struct TriedLevel {
    level: RigLevel,
    refusal: Option<String>,
}

impl TriedLevel {
    /// Sets a level up and takes it down.
    fn of(level: RigLevel) -> Self {
        let plan = Plan { level: Wanted::Exactly(level), ..Plan::new(Link::open()) };
        Self { level, refusal: Rig::raise(&plan).err().map(|refusal| refusal.to_string()) }
    }

    fn object(&self) -> Value {
        let Self { level, refusal } = self;
        let cannot_test = level.cannot_test();
        json!({"level": level, "available": refusal.is_none(), "reason": refusal, "cannot_test": cannot_test})
    }
}

fn object(profile: &Profile) -> Value {
    json!({
        "name": profile.name,
        "up_bits_per_second": profile.up_bits_per_second,
        "down_bits_per_second": profile.down_bits_per_second,
        "round_trip_us": profile.round_trip_us,
        "jitter_us": profile.jitter_us,
        "queue_packets": profile.queue_packets,
        "source": profile.source,
    })
}

fn text(levels: &[TriedLevel]) -> String {
    let megabits = |bits: u64| format!("{}", bits as f64 / 1e6);
    let ms = |us: u64| format!("{}", us as f64 / 1e3);
    let header = ["profile", "down Mbit/s", "up Mbit/s", "round trip ms", "jitter ms", "queue", "source"];
    let rows = PROFILES.iter().map(|profile| {
        [
            profile.name.to_owned(),
            megabits(profile.down_bits_per_second),
            megabits(profile.up_bits_per_second),
            ms(profile.round_trip_us),
            ms(profile.jitter_us),
            profile.queue_packets.to_string(),
            profile.source.to_owned(),
        ]
    });
    let mut text = table(header, rows);
    text.push_str("\n\nLevels on this machine:\n");
    for TriedLevel { level, refusal } in levels {
        let state = refusal.as_ref().map_or_else(|| "yes".to_owned(), |refusal| format!("no: {refusal}"));
        text.push_str(&format!("  {level}: {state}\n"));
        for missing in level.cannot_test() {
            text.push_str(&format!("    cannot test {missing}\n"));
        }
    }
    text
}
