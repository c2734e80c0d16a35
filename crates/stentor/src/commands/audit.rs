//! `stentor audit`: the audit trail.

use crate::connection::ConnectionArgs;
use crate::output::{Output, listing};
use clap::{Args, Subcommand};

/// Show changes with their author, time and address
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// List changes of apps, keys, credentials, schedules and running campaigns, the newest first
    #[command(after_help = "\
Examples:
  stentor audit list
  stentor audit list --app app_… --action credential.put
  stentor audit list --since 2026-11-01T00:00:00Z --limit 1000 --json

Needs the root key. --app shows the changes in one app.")]
    List {
        /// Only this action, such as key.create
        #[arg(long)]
        action: Option<String>,
        /// Only changes since this instant (RFC 3339)
        #[arg(long, value_name = "INSTANT")]
        since: Option<String>,
        /// The most entries to show
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Continue after the previous page; the value is its `next`
        #[arg(long)]
        before: Option<String>,
    },
}

impl AuditArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connection.client()?;
        let AuditCommand::List { action, since, limit, before } = self.command;
        let mut query = vec![("limit", limit.to_string())];
        let given = [("action", action), ("since", since), ("before", before)];
        query.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let page = client.get_with("/v1/audit", &query).await?;
        output.result(&page, || {
            let fields = [
                "at",
                "by",
                "key_name",
                "person_name",
                "app",
                "action",
                "thing",
                "detail",
                "address",
                "outcome",
            ];
            let table = listing(&page["entries"], fields);
            match page["next"].as_str() {
                Some(next) => format!("{table}\n(more: --before {next})"),
                None => table,
            }
        })
    }
}
