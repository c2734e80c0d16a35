//! `stentor lab run`: a published study, run again with our server against emulators.

mod background;
mod known;
mod proof;
mod records;
mod site;
mod trial;
mod watch;

use crate::failure::{Exit, Failure};
use crate::output::{Output, note, table};
use clap::{Args, ValueEnum};
use records::Records;
use serde_json::{Value, json};
use site::Site;
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::report::{Report, Row};
use stentor_lab::study::{Mix, ProviderModel, Published, Scenario, Study};
use trial::{Answers, Trial};

/// So many apps send at once beyond the paper.
const APPS_AT_ONCE: [usize; 3] = [2, 5, 20];

/// Run a published study again and put its figures beside ours
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab run isikligil-2017 --scale 0.002 --out study
  stentor lab run isikligil-2017 --scale 0.05 --only T1,T9 --out study
  stentor lab run isikligil-2017 --scale 0.01 --beyond --out study --json

isikligil-2017: 13 tests, each a campaign to a million devices (at scale 1) of 3 million in two apps, through emulated
push services, with 20, 50 or 100 requests in flight for each. At full scale that takes hours. DIR gets report.html,
rates.svg, scenarios.ndjson, samples.csv and provenance.json. Exits 0 only if nothing was lost, stuck or sent twice.")]
pub(crate) struct Run {
    /// Which study
    #[arg(value_enum)]
    study: StudyName,
    /// Share of the paper's devices: 1 is all of them
    #[arg(long, default_value_t = 0.002, value_name = "S", value_parser = scale)]
    scale: f64,
    /// Where the results go; the directory must not exist or be empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Run these tests only
    #[arg(long, value_name = "TEST", value_delimiter = ',')]
    only: Vec<String>,
    /// Also run what the paper did not: as many requests as the server likes, other latencies and answers, many apps
    #[arg(long)]
    beyond: bool,
    /// Half of the push services' answers come sooner; chosen so that their mean is what the paper allows
    #[arg(long, value_name = "MS")]
    latency_median_ms: Option<f64>,
    /// Give up a test when nothing has moved for so long
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    give_up_after_seconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StudyName {
    /// A push framework with a pool of consumers, 13 tests
    #[value(name = "isikligil-2017")]
    Isikligil2017,
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "a number is wanted".to_owned())?;
    if scale > 0.0 && scale <= 1.0 { Ok(scale) } else { Err("more than 0 and at most 1".to_owned()) }
}

impl Run {
    /// Runs the study.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let ended = crate::process::asked_to_end()?;
        let report = tokio::select! {
            report = self.perform() => report?,
            () = ended => {
                let sentence = "interrupted; what was measured so far is in the directory";
                return Err(Failure::new(Exit::Interrupted, sentence).into());
            }
        };
        let is_sound = report.rows.iter().chain(&report.beyond).all(Row::is_sound);
        output.result(&self.object(&report, is_sound), || self.describe(&report))?;
        Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn perform(&self) -> anyhow::Result<Report> {
        let study = self.study()?;
        let published = Published::isikligil_2017()?;
        let scenarios = self.scenarios(&study)?;
        let mut records = Records::create(&self.out)?;
        let mut site = Site::build(&study, self.scale, &self.out).await?;
        let mut rows = Vec::new();
        for scenario in scenarios {
            let mut row = self.trial(&Trial::of(scenario, study.provider), &mut site, &mut records).await?;
            row.note.clone_from(&scenario.note);
            row.derive(Some(scenario.inflight_requests()), published.pushes_per_second(&scenario.id));
            records.row(&row)?;
            rows.push(row);
        }
        let mut beyond = Vec::new();
        if self.beyond {
            for trial in self.further(&study, &mut site).await? {
                let mut row = self.trial(&trial, &mut site, &mut records).await?;
                row.derive(trial.inflight_requests(), None);
                records.row(&row)?;
                beyond.push(row);
            }
        }
        let provenance = records.provenance(self.scale, &study, &site).await?;
        let report = Report { study, published, rows, beyond, provenance };
        records.finish(&report)?;
        Ok(report)
    }

    fn study(&self) -> anyhow::Result<Study> {
        let StudyName::Isikligil2017 = self.study;
        let mut study = Study::isikligil_2017()?;
        if let Some(median) = self.latency_median_ms {
            study.provider.latency_median_ms = median;
        }
        Ok(study)
    }

    fn scenarios<'a>(&self, study: &'a Study) -> anyhow::Result<Vec<&'a Scenario>> {
        let known = |id: &&String| !study.scenarios.iter().any(|scenario| scenario.id == **id);
        if let Some(unknown) = self.only.iter().find(known) {
            return Err(Failure::usage(format!("there is no test {unknown}: they are T1 to T13")).into());
        }
        let wanted = |scenario: &&Scenario| self.only.is_empty() || self.only.contains(&scenario.id);
        Ok(study.scenarios.iter().filter(wanted).collect())
    }

    async fn trial(&self, trial: &Trial, site: &mut Site, records: &mut Records) -> anyhow::Result<Row> {
        let give_up_after = std::time::Duration::from_secs(self.give_up_after_seconds);
        let row = trial::run(trial, site, records, give_up_after).await?;
        note(&format!(
            "{}: {} pushes in {:.2} s, {:.1} pushes/s, {} lost",
            row.id, row.pushes, row.wall_seconds, row.pushes_per_second, row.lost
        ));
        Ok(row)
    }

    /// Lists what the paper did not run. Refused tokens come last: the server forgets their devices.
    async fn further(&self, study: &Study, site: &mut Site) -> anyhow::Result<Vec<Trial>> {
        let usual = study.provider;
        let adaptive = |id: &str, latency| Trial::beyond(id, None, latency, vec![site::BOTH]);
        let fixed = |id: &str, median_ms| {
            let latency = ProviderModel { latency_median_ms: median_ms, ..usual };
            Trial::beyond(id, Some(50), latency, vec![site::BOTH])
        };
        let mut trials = vec![
            adaptive("adaptive", usual),
            adaptive(
                "adaptive, slow",
                ProviderModel { latency_median_ms: 4.0 * usual.latency_median_ms, ..usual },
            ),
            fixed("fast push services", usual.latency_median_ms / 4.0),
            fixed("slow push services", usual.latency_median_ms * 4.0),
        ];
        for count in APPS_AT_ONCE {
            let apps = site.add_apps(count, study.devices(Mix::Both, self.scale)).await?;
            trials.push(Trial::beyond(&format!("{count} apps at once"), None, usual, apps));
        }
        let realistic = Trial::beyond("some tokens dead", Some(50), usual, vec![site::BOTH]);
        trials.push(Trial { answers: Answers::Realistic, ..realistic });
        Ok(trials)
    }

    fn object(&self, report: &Report, is_sound: bool) -> Value {
        json!({
            "study": report.study.id,
            "ok": is_sound,
            "scale": self.scale,
            "scenarios": report.rows,
            "beyond": report.beyond,
            "claims": report.judged(),
            "provenance": report.provenance,
            "out": self.out,
        })
    }

    fn describe(&self, report: &Report) -> String {
        let header =
            ["test", "mix", "in flight", "pools", "s", "pushes/s", "published", "ratio", "bound", "lost"];
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let rows = report.rows.iter().chain(&report.beyond).map(|row| {
            [
                row.id.clone(),
                row.mix.clone(),
                row.consumers.map_or_else(|| "adaptive".to_owned(), |count| count.to_string()),
                if row.pooled { "yes" } else { "no" }.to_owned(),
                format!("{:.2}", row.wall_seconds),
                format!("{:.1}", row.pushes_per_second),
                number(row.published_pushes_per_second, 0),
                number(row.ratio, 2),
                number(row.bound_pushes_per_second, 0),
                row.lost.to_string(),
            ]
        });
        let claims = report.judged().into_iter().map(|one| {
            let (published, ours) = (one.published.word(), one.ours.word());
            format!("{}\n  by the paper's figures: {published}; by ours: {ours}", one.claim.text)
        });
        let claims: Vec<String> = claims.collect();
        let page = self.out.join(records::PAGE);
        format!("{}\n\n{}\n\nreport: {}", table(header, rows), claims.join("\n"), page.display())
    }
}

#[cfg(test)]
mod tests {
    use super::scale;

    #[test]
    fn a_scale_is_a_share_of_the_paper() {
        assert_eq!((scale("1"), scale("0.002")), (Ok(1.0), Ok(0.002)));
        assert!(["0", "-1", "1.01", "NaN", "x"].iter().all(|text| scale(text).is_err()));
    }
}
