//! A rival of the path of single messages: a durable job queue with one row for each job (River on PostgreSQL, a program in Go), under the
//! same load and before the same sink.

use super::singles::{self, LoadEnd, MessageLoad, Pace};
use super::sink_log;
use anyhow::Context;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use stentor_lab::subject::catalogue::{RIVALS, folder_named};
use stentor_stage::child_process::ChildProcess;
use stentor_stage::client::ApiClient;
use stentor_stage::postgres::PrivatePostgres;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::Stage;

/// Name of the rival in the report.
const NAME: &str = "river-0.51.2/postgresql";
/// The program below the folder of rivals, and the command that builds it.
const PROGRAM: &str = "queue/queue";
const BUILD: &str = "go build -C lab/rivals/queue";

/// Results of a rival.
pub(super) struct RivalRow {
    /// The measurement, or the reason for which there is none.
    measured: Result<RivalLoad, String>,
}

struct RivalLoad {
    per_second: f64,
    lost: usize,
    /// Processor time of the program and of its database for each message.
    cpu_us: f64,
}

impl RivalRow {
    /// Returns the row of the report.
    pub(super) fn object(&self) -> Value {
        match &self.measured {
            Ok(load) => json!({
                "name": NAME,
                "durable": true,
                "sustained_per_second": load.per_second,
                "cpu_us_per_message": load.cpu_us,
                "lost": load.lost,
            }),
            Err(missing) => json!({"name": NAME, "durable": true, "rival_missing": missing}),
        }
    }
}

/// Measures the rival with messages to tokens from the `first` on.
pub(super) async fn measure(stage: &Stage, load: MessageLoad, reporter: &dyn Reporter) -> RivalRow {
    let measured = match program() {
        Some(program) => under_load(&program, stage, load).await.map_err(|error| format!("{error:#}")),
        None => Err(format!("not built: {BUILD}")),
    };
    reporter.line(&match &measured {
        Ok(RivalLoad { per_second, .. }) => format!("{NAME}: {per_second:.0} messages per second"),
        Err(missing) => format!("{NAME}: {missing}"),
    });
    RivalRow { measured }
}

fn program() -> Option<PathBuf> {
    let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
    let folder = folder_named(RIVALS, here.iter().chain(&program).map(PathBuf::as_path))?;
    Some(folder.join(PROGRAM)).filter(|program| program.is_file())
}

async fn under_load(program: &Path, stage: &Stage, load: MessageLoad) -> anyhow::Result<RivalLoad> {
    let database = PrivatePostgres::start()?;
    let ready = stage.directory().join("queue.ready");
    let mut command = Command::new(program);
    let authority = stage.directory().join("ca").join("ca.pem");
    let options: [(&str, OsString); 4] = [
        ("-database", database.url().into()),
        ("-push", stage.emulators.apns.url.clone().into()),
        ("-authority", authority.into()),
        ("-ready-file", ready.clone().into()),
    ];
    for (name, value) in options {
        command.arg(name).arg(value);
    }
    let mut child = ChildProcess::spawn("queue", command, &stage.directory().join("queue.log"))?;
    let facts = child.ready(&ready).await?;
    let address = facts["address"].as_str().context("it does not say where it listens")?;
    let client = ApiClient::new(&format!("http://{address}"), None, None)?;
    let warm = MessageLoad { end: LoadEnd::Count(load.callers * 4), ..load };
    let warm = singles::send(&client, warm).await?;
    let load = MessageLoad { first: load.first + load.callers * 4, pace: Pace::AtOnce, ..load };
    sink_log::kept(stage.directory(), &[&warm]).await?;
    let (before, began) = (child.usage().cpu_seconds + database.cpu_seconds(), Instant::now());
    let sent = singles::send(&client, load).await?;
    let kept = sink_log::kept(stage.directory(), &[&sent]).await?;
    let wall = began.elapsed();
    let cpu_seconds = child.usage().cpu_seconds + database.cpu_seconds() - before;
    child.terminate();
    let count = sent.messages.len() as f64;
    Ok(RivalLoad {
        per_second: count / Duration::as_secs_f64(&wall),
        lost: kept.lost,
        cpu_us: cpu_seconds * 1e6 / count,
    })
}
