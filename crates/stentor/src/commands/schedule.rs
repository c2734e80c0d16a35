//! `stentor schedule`: recurring messages.

use super::message::ContentArgs;
use crate::client::{ApiClient, segment};
use crate::connection::ConnectionArgs;
use crate::output::{Output, cell, facts, listing};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stentor_server::words;

/// Send recurring messages
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: ScheduleCommand,
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    /// Create a schedule
    #[command(after_help = "\
Example:
  stentor schedule create --cron \"0 9 * * 1-5\" --time-zone Europe/Rome --topic news --title \"Good morning\"")]
    Create(Box<CreateArgs>),
    /// List the schedules
    #[command(after_help = "Example:\n  stentor schedule list")]
    List,
    /// Show one schedule and its next occurrences
    #[command(after_help = "Example:\n  stentor schedule show sch_…")]
    Show {
        /// The schedule
        schedule: String,
    },
    /// Pause a schedule
    #[command(after_help = "Example:\n  stentor schedule pause sch_…")]
    Pause {
        /// The schedule
        schedule: String,
    },
    /// Resume a paused schedule
    #[command(after_help = "Example:\n  stentor schedule resume sch_…")]
    Resume {
        /// The schedule
        schedule: String,
    },
    /// Cancel a schedule permanently
    #[command(after_help = "Example:\n  stentor schedule cancel sch_…")]
    Cancel {
        /// The schedule
        schedule: String,
    },
}

/// A new schedule.
#[derive(Debug, Args)]
struct CreateArgs {
    /// The app's name
    #[arg(long)]
    name: Option<String>,
    /// The cron pattern: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "CRON")]
    cron: String,
    /// The time zone of the cron pattern
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    time_zone: String,
    /// The instant after which it ends (RFC 3339)
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,
    /// The treatment of occurrences missed while the server was down
    #[arg(long, ignore_case = true, value_parser = PossibleValuesParser::new(words::CATCH_UPS))]
    catch_up: Option<String>,
    #[command(flatten)]
    content: ContentArgs,
}

impl ScheduleArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connection.app_client().await?;
        match self.command {
            ScheduleCommand::Create(create) => {
                let schedule = client.post("/v1/schedules", &create.body()?).await?;
                output.result(&schedule, || facts(&schedule))
            }
            ScheduleCommand::List => {
                let list = client.get("/v1/schedules").await?;
                let fields = ["id", "name", "cron", "time_zone", "state", "next_due"];
                output.result(&list, || listing(&list["schedules"], fields))
            }
            ScheduleCommand::Show { schedule } => {
                let schedule = client.get(&format!("/v1/schedules/{}", segment(&schedule))).await?;
                output.result(&schedule, || facts(&schedule))
            }
            ScheduleCommand::Pause { schedule } => steer(&client, &schedule, "pause", output).await,
            ScheduleCommand::Resume { schedule } => steer(&client, &schedule, "resume", output).await,
            ScheduleCommand::Cancel { schedule } => steer(&client, &schedule, "cancel", output).await,
        }
    }
}

async fn steer(client: &ApiClient, schedule: &str, action: &str, output: Output) -> anyhow::Result<()> {
    let reply = client.act(&format!("/v1/schedules/{}/{action}", segment(schedule))).await?;
    output.result(&reply, || format!("{schedule} is {}", cell(&reply["state"])))
}

impl CreateArgs {
    fn body(&self) -> anyhow::Result<Value> {
        let mut body = json!({
            "cron": self.cron,
            "time_zone": self.time_zone,
            "message": self.content.request()?,
        });
        for (field, value) in [("name", &self.name), ("until", &self.until), ("catch_up", &self.catch_up)] {
            if let Some(value) = value {
                body[field] = json!(value);
            }
        }
        Ok(body)
    }
}
