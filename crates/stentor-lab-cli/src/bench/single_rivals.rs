//! Rivals of the path of single messages, under the same load and before the same sink: a durable job queue with one row for each job (River
//! on PostgreSQL), and gorush, which keeps messages in memory only.

use super::singles::{self, LoadEnd, MessageLoad, Pace, RequestForm};
use super::sink_log;
use anyhow::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use stentor_lab::subject::catalogue::{RIVALS, folder_named};
use stentor_stage::child_process::ChildProcess;
use stentor_stage::client::ApiClient;
use stentor_stage::devices::StagedService;
use stentor_stage::postgres::PrivatePostgres;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::Stage;

/// A rival: a program in Go below the folder of rivals.
struct Rival {
    /// Its name in the report.
    name: &'static str,
    /// Its folder and its program's name.
    folder: &'static str,
    /// True if a message that it accepted survives its crash.
    durable: bool,
    /// True if it needs a database.
    on_postgres: bool,
    form: RequestForm,
}

const ALL: [Rival; 2] = [
    Rival {
        name: "river-0.51.2/postgresql",
        folder: "queue",
        durable: true,
        on_postgres: true,
        form: RequestForm::Stentor,
    },
    Rival {
        name: "gorush-1.18.8",
        folder: "gorush",
        durable: false,
        on_postgres: false,
        form: RequestForm::Gorush,
    },
];

/// Results of a rival.
pub(super) struct RivalRow {
    rival: &'static Rival,
    /// The measurement, or the reason for which there is none.
    measured: Result<RivalLoad, String>,
}

struct RivalLoad {
    per_second: f64,
    lost: usize,
    /// Processor time of the program and of its database for each message.
    cpu_us: f64,
    /// The first number of a token that it did not use.
    next: u64,
}

impl RivalRow {
    /// Returns the row of the report.
    pub(super) fn object(&self) -> Value {
        let Rival { name, durable, .. } = self.rival;
        match &self.measured {
            Ok(load) => json!({
                "name": name,
                "durable": durable,
                "sustained_per_second": load.per_second,
                "cpu_us_per_message": load.cpu_us,
                "lost": load.lost,
            }),
            Err(missing) => json!({"name": name, "durable": durable, "rival_missing": missing}),
        }
    }
}

/// Measures the rivals, one after the other, with messages to tokens from the load's first on.
pub(super) async fn measure_all(
    stage: &Stage,
    mut load: MessageLoad,
    reporter: &dyn Reporter,
) -> Vec<RivalRow> {
    let mut rows = Vec::with_capacity(ALL.len());
    for rival in &ALL {
        load.form = rival.form;
        let row = rival.measure(stage, load, reporter).await;
        if let Ok(done) = &row.measured {
            load.first = done.next;
        }
        rows.push(row);
    }
    rows
}

impl Rival {
    async fn measure(&'static self, stage: &Stage, load: MessageLoad, reporter: &dyn Reporter) -> RivalRow {
        let measured = match self.program() {
            Some(program) => {
                self.under_load(&program, stage, load).await.map_err(|error| format!("{error:#}"))
            }
            None => Err(format!("not built: go build -C lab/rivals/{}", self.folder)),
        };
        let name = self.name;
        reporter.line(&match &measured {
            Ok(RivalLoad { per_second, .. }) => format!("{name}: {per_second:.0} messages per second"),
            Err(missing) => format!("{name}: {missing}"),
        });
        RivalRow { rival: self, measured }
    }

    fn program(&self) -> Option<PathBuf> {
        let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
        let folder = folder_named(RIVALS, here.iter().chain(&program).map(PathBuf::as_path))?;
        Some(folder.join(self.folder).join(self.folder)).filter(|program| program.is_file())
    }

    async fn under_load(
        &self,
        program: &Path,
        stage: &Stage,
        load: MessageLoad,
    ) -> anyhow::Result<RivalLoad> {
        let database = self.on_postgres.then(PrivatePostgres::start).transpose()?;
        let ready = stage.directory().join(format!("{}.ready", self.folder));
        let authority = stage.directory().join("ca").join("ca.pem");
        let mut command = Command::new(program);
        command
            .arg("-push")
            .arg(&stage.emulators.of(StagedService::Apns)?.url)
            .arg("-authority")
            .arg(authority);
        command.arg("-ready-file").arg(&ready);
        if let Some(database) = &database {
            command.arg("-database").arg(database.url());
        }
        let log = stage.directory().join(format!("{}.log", self.folder));
        let mut child = ChildProcess::spawn(self.folder, command, &log)?;
        let facts = child.ready(&ready).await?;
        let address = facts["address"].as_str().context("it does not say where it listens")?;
        let client = [ApiClient::new(&format!("http://{address}"), None, None)?];
        let warm = MessageLoad { end: LoadEnd::Count(load.callers * 4), pace: Pace::AtOnce, ..load };
        let warm = singles::send(&client, warm).await?;
        let load = MessageLoad { first: load.first + load.callers * 4, pace: Pace::AtOnce, ..load };
        sink_log::kept(stage.directory(), &[&warm]).await?;
        let mut cpu_seconds =
            || child.usage().cpu_seconds + database.as_ref().map_or(0.0, PrivatePostgres::cpu_seconds);
        let (before, began) = (cpu_seconds(), Instant::now());
        let sent = singles::send(&client, load).await?;
        let kept = sink_log::kept(stage.directory(), &[&sent]).await?;
        let wall = began.elapsed();
        let cpu_seconds = cpu_seconds() - before;
        child.terminate();
        let count = sent.messages.len() as f64;
        Ok(RivalLoad {
            per_second: count / Duration::as_secs_f64(&wall),
            lost: kept.lost,
            cpu_us: cpu_seconds * 1e6 / count,
            next: load.first + sent.messages.len() as u64 + load.callers,
        })
    }
}
