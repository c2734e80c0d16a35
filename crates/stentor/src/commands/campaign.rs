//! `stentor campaign`: watch and control campaigns.

use crate::client::{ApiClient, segment};
use crate::connection::ConnectionArgs;
use crate::failure::{CommandFailure, Exit};
use crate::ledger::{self, CampaignLedger};
use crate::output::{Output, cell, paged, table, thousands};
use crate::progress::PhaseProgress;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// Interval of polling: four updates a second look smooth, and the load on the server is negligible.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Watch and control campaigns
#[derive(Debug, Args)]
pub(crate) struct CampaignArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: CampaignCommand,
}

#[derive(Debug, Subcommand)]
enum CampaignCommand {
    /// Watch a campaign until its last delivery has ended, then show the books
    #[command(after_help = "\
Examples:
  stentor campaign progress cmp_…
  stentor campaign progress --once cmp_…")]
    Progress {
        /// The campaign, or its message
        campaign: String,
        /// Show the current books and do not wait
        #[arg(long)]
        once: bool,
    },
    /// List campaigns, the newest first
    #[command(after_help = "Example:\n  stentor campaign list --limit 10")]
    List {
        /// The most campaigns to show
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Continue after the previous page; the value is its `next`
        #[arg(long)]
        before: Option<String>,
    },
    /// Pause a campaign; messages in flight finish
    #[command(after_help = "Example:\n  stentor campaign pause cmp_…")]
    Pause {
        /// The campaign
        campaign: String,
    },
    /// Resume a paused campaign
    #[command(after_help = "Example:\n  stentor campaign resume cmp_…")]
    Resume {
        /// The campaign
        campaign: String,
    },
    /// Cancel a campaign permanently; messages in flight finish
    #[command(after_help = "Example:\n  stentor campaign cancel cmp_…")]
    Cancel {
        /// The campaign
        campaign: String,
    },
}

impl CampaignArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let client = self.connection.app_client().await?;
        match self.command {
            CampaignCommand::Progress { campaign, once: false } => {
                return follow(&client, &campaign, output).await;
            }
            CampaignCommand::Progress { campaign, once: true } => {
                let (said, ledger) = CampaignLedger::fetch(&client, &campaign).await?;
                output.result(&said, || ledger::describe(&ledger))?;
            }
            CampaignCommand::List { limit, before } => list(&client, limit, before, output).await?,
            CampaignCommand::Pause { campaign } => steer(&client, &campaign, "pause", output).await?,
            CampaignCommand::Resume { campaign } => steer(&client, &campaign, "resume", output).await?,
            CampaignCommand::Cancel { campaign } => steer(&client, &campaign, "cancel", output).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn list(client: &ApiClient, limit: u32, before: Option<String>, output: Output) -> anyhow::Result<()> {
    let mut query = vec![("limit", limit.to_string())];
    query.extend(before.map(|before| ("before", before)));
    let page = client.get_with("/v1/campaigns", &query).await?;
    output.result(&page, || paged(campaigns(&page["campaigns"]), &page, "--before"))
}

/// Lists campaigns with their targets and their progress.
fn campaigns(list: &Value) -> String {
    let rows = list.as_array().into_iter().flatten().map(|one| {
        let totals = &one["totals"];
        let count = |name: &str| totals[name].as_u64().unwrap_or(0);
        let open = count("queued") + count("sending");
        let not_taken: u64 =
            ["rejected", "expired", "collapsed", "canceled", "failed"].iter().map(|name| count(name)).sum();
        let more = if one["audience_complete"] == false { "+" } else { "" };
        [
            cell(&one["id"]),
            cell(&one["state"]),
            cell(&one["target"]),
            cell(&one["title"]),
            format!("{}{more}", thousands(one["audience"].as_u64().unwrap_or(0))),
            thousands(open),
            thousands(count("accepted")),
            thousands(not_taken),
            cell(&one["created_at"]),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return "(none)".to_owned();
    }
    table(
        ["id", "state", "target", "title", "audience", "open", "accepted", "not accepted", "created_at"],
        rows,
    )
}

async fn steer(client: &ApiClient, campaign: &str, action: &str, output: Output) -> anyhow::Result<()> {
    let ledger = client.act(&format!("/v1/campaigns/{}/{action}", segment(campaign))).await?;
    output.result(&ledger, || format!("{campaign} is {}", cell(&ledger["state"])))
}

/// Shows a campaign's progress until it has ended, then its books. Fails if the books do not balance or deliveries are still open.
pub(super) async fn follow(client: &ApiClient, campaign: &str, output: Output) -> anyhow::Result<ExitCode> {
    let (mut progress, mut reported) = (None, Vec::new());
    loop {
        let (said, ledger) = CampaignLedger::fetch(client, campaign).await?;
        let progress = progress.get_or_insert_with(|| PhaseProgress::start("deliveries", ledger.audience));
        progress.set_total(ledger.audience);
        progress.update(ledger.totals.ended());
        if ledger.is_ended() {
            return close(&said, &ledger, output);
        }
        // Shown once: the time of the continuation may be postponed repeatedly.
        let causes = ledger.waits.iter().map(|wait| (wait.provider.clone(), wait.detail.clone()));
        let causes: Vec<_> = causes.collect();
        if causes != reported && !causes.is_empty() {
            progress.remark(&ledger.waits_text());
        }
        reported = causes;
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = tokio::signal::ctrl_c() => {
                let sentence = "stopped watching; the campaign goes on (see it again with `stentor campaign progress`)";
                return Err(CommandFailure::new(Exit::Interrupted, sentence).into());
            }
        }
    }
}

fn close(said: &Value, ledger: &CampaignLedger, output: Output) -> anyhow::Result<ExitCode> {
    output.result(said, || ledger::describe(ledger))?;
    let closed = ledger.sums_up() && ledger.balanced && ledger.totals.open() == 0;
    Ok(if closed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
