//! What the demo says at its end: counted numbers only, and whether the proof holds.

use super::Demo;
use super::campaign::Run;
use super::comparison::{Comparison, Counted};
use super::fleet::Half;
use super::troubles::Trouble;
use super::verdict::Facts;
use crate::child::Usage;
use crate::emulated;
use crate::ledger::{ProviderBooks, Totals};
use crate::output::{ledger as table, thousands};
use serde_json::{Value, json};
use stentor_lab::emulation::NOT_TIMED;
use stentor_server::pipeline::PipelineConfig;

/// Fields that are times, what rests on times, or memory, which is the emulator's where there is one.
const TIMED: [&str; 9] = [
    "wall_seconds",
    "pushes_per_second",
    "import_seconds",
    "server_cpu_seconds",
    "server_cpu_seconds_total",
    "server_peak_rss_bytes",
    "campaign_peak_rss_bytes",
    "import_cpu_seconds",
    "import_peak_rss_bytes",
];

/// How the import went.
pub(crate) struct Import {
    /// How long it took.
    pub(crate) seconds: f64,
    /// What the server used for it, when it was a process of its own.
    pub(crate) usage: Option<Usage>,
}

/// Everything that was found.
pub(crate) struct Report {
    devices: u64,
    run: Run,
    comparison: Comparison,
    usage: Usage,
    import: Import,
    /// The limits in force.
    limits: Value,
    /// How many duplicates the ledger says there may be.
    allowed_duplicates: u64,
    /// What does not hold, a sentence each.
    broken: Vec<String>,
}

impl Report {
    /// Draws the conclusions.
    pub(crate) fn new(
        demo: &Demo,
        run: Run,
        comparison: Comparison,
        usage: Usage,
        import: Import,
        limits: Value,
    ) -> Self {
        let mut facts = Facts {
            devices: demo.devices,
            audience: run.ledger.audience,
            totals: run.ledger.totals,
            state: run.ledger.state_text(),
            balanced: run.is_balanced(),
            stuck: run.stuck,
            duplicate_bound: run.ledger.duplicate_bound,
            max_unsettled: PipelineConfig::default().max_unsettled_deliveries,
            attempts: run.ledger.attempts,
            kills: [demo.kills, run.kills],
            // An emulator that stops for longer than anybody waits leaves as much in doubt as one that is killed.
            emulator_kills: [demo.emulator_kills() + demo.stalls, run.emulator_kills + run.stalls],
            troubles: [demo.planned_troubles(), run.troubles],
            has_wrong_dates: demo.trouble == Some(Trouble::ClockJump),
            inquiry: run.inquiry.broken(demo.trouble.is_some_and(Trouble::refuses)),
            ..Facts::default()
        };
        facts.compare(&comparison);
        let allowed_duplicates = facts.allowed_duplicates();
        let broken = facts.broken();
        Self { devices: demo.devices, run, comparison, usage, import, limits, allowed_duplicates, broken }
    }

    /// Returns whether the proof holds.
    pub(crate) fn holds(&self) -> bool {
        self.broken.is_empty()
    }

    /// Deliveries that a push service answered for good, per second of the campaign.
    fn pushes_per_second(&self) -> f64 {
        let Totals { accepted, rejected, .. } = self.run.ledger.totals;
        (accepted + rejected) as f64 / self.run.wall_seconds.max(1e-9)
    }

    /// Devices that got it twice for each kill of the server; `None` without kills.
    fn duplicates_per_kill(&self) -> Option<f64> {
        (self.run.kills > 0).then(|| self.comparison.duplicates as f64 / f64::from(self.run.kills))
    }

    /// The report as one object; without times where the processor is emulated.
    pub(crate) fn object(&self) -> Value {
        let mut object = self.whole_object();
        if !emulated::is_timed() {
            TIMED.iter().for_each(|field| object[field] = Value::Null);
            object["not_timed"] = NOT_TIMED.into();
        }
        object
    }

    fn whole_object(&self) -> Value {
        let (ledger, comparison) = (&self.run.ledger, &self.comparison);
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
            "lost": comparison.lost,
            "disagreeing": comparison.disagreeing,
            "duplicates": comparison.duplicates,
            "unmarked_duplicates": comparison.unmarked_duplicates,
            "unanswered_duplicates": comparison.unanswered_duplicates,
            "duplicate_bound": ledger.duplicate_bound,
            "ambiguous": ledger.ambiguous,
            "attempts": ledger.attempts,
            "ledger_balanced": self.run.is_balanced(),
            "stuck": self.run.stuck,
            "kills": self.run.kills,
            "duplicates_per_kill": self.duplicates_per_kill().map(rounded),
            "emulator_kills": self.run.emulator_kills,
            "stalls": self.run.stalls,
            "troubles": self.run.troubles,
            "inquiry": self.run.inquiry.object(),
            "wall_seconds": rounded(self.run.wall_seconds),
            "pushes_per_second": rounded(self.pushes_per_second()),
            "import_seconds": rounded(self.import.seconds),
            "server_cpu_seconds": rounded(self.run.cpu_seconds),
            "server_cpu_seconds_total": rounded(self.usage.cpu_seconds),
            "server_peak_rss_bytes": self.usage.peak_rss_bytes,
            "campaign_peak_rss_bytes": self.run.peak_rss_bytes,
            "import_cpu_seconds": self.import.usage.map(|usage| rounded(usage.cpu_seconds)),
            "import_peak_rss_bytes": self.import.usage.map(|usage| usage.peak_rss_bytes),
            "asked": comparison.asked,
            "limits": self.limits,
            "emulators": {"fcm": self.counted_object(Half::Fcm), "apns": self.counted_object(Half::Apns)},
        })
    }

    fn counted_object(&self, half: Half) -> Value {
        let counted = self.counted(half);
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

    fn counted(&self, half: Half) -> Counted {
        self.comparison.counted.get(&half).copied().unwrap_or_default()
    }

    /// The report as tables and sentences.
    pub(crate) fn describe(&self) -> String {
        let mut parts = vec![self.run.ledger.describe(), self.side_by_side(), self.figures()];
        if !self.comparison.examples.is_empty() {
            parts.push(format!("for example\n  {}", self.comparison.examples.join("\n  ")));
        }
        parts.push(self.verdict());
        parts.join("\n\n")
    }

    fn side_by_side(&self) -> String {
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
        let rows = Half::BOTH.map(|half| {
            let (books, counted) = (self.books(half), self.counted(half));
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
            [half.word().to_owned(), a, b, c, d, e, f, g]
        });
        format!(
            "the ledger beside the emulators' own counts (tokens; attempts are requests)\n\n{}",
            table(header, rows)
        )
    }

    fn books(&self, half: Half) -> ProviderBooks {
        let books = self.run.ledger.providers.iter().find(|books| books.provider == half.word());
        books.cloned().unwrap_or_default()
    }

    fn figures(&self) -> String {
        let run = &self.run;
        let mut lines = if emulated::is_timed() { self.times() } else { vec![NOT_TIMED.to_owned()] };
        if run.kills + run.emulator_kills > 0 {
            lines.push(format!("kills     server {}, emulators {}", run.kills, run.emulator_kills));
        }
        if let Some(duplicates) = self.duplicates_per_kill().filter(|_| run.emulator_kills == 0) {
            lines.push(format!(
                "doubled   {} devices for each kill of the server",
                thousands(duplicates as u64)
            ));
        }
        if run.stalls > 0 {
            lines.push(format!("stopped   emulators {} times", run.stalls));
        }
        if run.troubles > 0 {
            lines.push(format!(
                "trouble   {} times below the server; of {} messages meanwhile it kept {} and refused {}",
                run.troubles,
                run.inquiry.kept() + run.inquiry.refused(),
                run.inquiry.kept(),
                run.inquiry.refused()
            ));
        }
        lines.join("\n")
    }

    fn times(&self) -> Vec<String> {
        let (run, usage) = (&self.run, self.usage);
        vec![
            format!("import    {} devices in {:.2} s", thousands(self.devices), self.import.seconds),
            format!(
                "campaign  {:.2} s from the 202 to the settled ledger, {} pushes/s",
                run.wall_seconds,
                thousands(self.pushes_per_second() as u64)
            ),
            format!(
                "server    {:.2} CPU s for the campaign ({:.2} in all), at most {} MiB resident",
                run.cpu_seconds,
                usage.cpu_seconds,
                thousands(usage.peak_rss_bytes >> 20)
            ),
        ]
    }

    fn verdict(&self) -> String {
        if !self.holds() {
            return format!("THE PROOF DOES NOT HOLD: {}", self.broken.join("; "));
        }
        format!(
            "ledger and emulators agree for every one of {} tokens: 0 lost, 0 stuck, {} duplicates (at most {} were possible)",
            thousands(self.devices),
            thousands(self.comparison.duplicates),
            thousands(self.allowed_duplicates)
        )
    }
}

/// Rounds to three decimals.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
