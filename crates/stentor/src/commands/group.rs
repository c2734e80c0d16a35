//! `stentor group`: fixed sets of users and devices.

use crate::client::{ApiClient, segment};
use crate::connection::ConnectionArgs;
use crate::failure::CommandFailure;
use crate::output::{Output, cell, facts, listing, paged, table};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Manage groups and their members
#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: GroupCommand,
}

#[derive(Debug, Subcommand)]
enum GroupCommand {
    /// List the groups
    #[command(after_help = "Example:\n  stentor group list")]
    List,
    /// Show one group
    #[command(after_help = "Example:\n  stentor group show team")]
    Show {
        /// The group
        group: String,
    },
    /// Create a group; harmless if it exists
    #[command(after_help = "Example:\n  stentor group create team")]
    Create {
        /// The group
        group: String,
    },
    /// List the members of a group, page by page
    #[command(after_help = "Example:\n  stentor group members team")]
    Members {
        /// The group
        group: String,
        /// The most members to show
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Continue after the previous page; the value is its `next`
        #[arg(long)]
        after: Option<String>,
    },
    /// Add users and devices to a group
    #[command(after_help = "Example:\n  stentor group add team --user u1 --user u2 --device dev_…")]
    Add(MemberArgs),
    /// Remove users and devices from a group
    #[command(after_help = "Example:\n  stentor group remove team --user u1")]
    Remove(MemberArgs),
    /// Delete a group; its members stay
    #[command(after_help = "Example:\n  stentor group delete team")]
    Delete {
        /// The group
        group: String,
    },
}

/// Some members of a group.
#[derive(Debug, Args)]
struct MemberArgs {
    /// The group
    group: String,
    /// A user; may be repeated
    #[arg(long = "user", value_name = "USER")]
    users: Vec<String>,
    /// A device; may be repeated
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
}

impl GroupArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connection.app_client().await?;
        match self.command {
            GroupCommand::List => {
                let groups = client.get_all("/v1/groups", "groups").await?;
                output.result(&groups, || listing(&groups["groups"], ["name", "member_count", "created_at"]))
            }
            GroupCommand::Show { group } => {
                let group = client.get(&path(&group)).await?;
                output.result(&group, || facts(&group))
            }
            GroupCommand::Create { group } => {
                let made = client.put(&path(&group), &Value::Null).await?;
                output.result(&made, || facts(&made))
            }
            GroupCommand::Members { group, limit, after } => {
                let mut query = vec![("limit", limit.to_string())];
                query.extend(after.map(|after| ("after", after)));
                let page = client.get_with(&format!("{}/members", path(&group)), &query).await?;
                output.result(&page, || paged(members(&page), &page, "--after"))
            }
            GroupCommand::Add(members) => members.change(&client, "members", output).await,
            GroupCommand::Remove(members) => members.change(&client, "members/remove", output).await,
            GroupCommand::Delete { group } => {
                client.delete(&path(&group)).await?;
                output.result(&json!({"deleted": group}), || format!("deleted {group}"))
            }
        }
    }
}

impl MemberArgs {
    async fn change(self, client: &ApiClient, action: &str, output: Output) -> anyhow::Result<()> {
        if self.users.is_empty() && self.devices.is_empty() {
            return Err(CommandFailure::usage("name the members: --user or --device").into());
        }
        let body = json!({"users": self.users, "devices": self.devices});
        let reply = client.post(&format!("{}/{action}", path(&self.group)), &body).await?;
        output.result(&reply, || {
            let counts =
                ["changed", "unchanged", "unknown"].map(|name| format!("{name} {}", cell(&reply[name])));
            let unknown = [&reply["unknown_devices"], &reply["unknown_users"]];
            let unknown = unknown.into_iter().filter_map(Value::as_array).flatten();
            unknown.fold(counts.join(", "), |lines, one| lines + "\nunknown " + &cell(one))
        })
    }
}

fn members(page: &Value) -> String {
    let of = |kind: &'static str, field: &str| {
        let list = page[field].as_array().cloned().unwrap_or_default();
        list.into_iter().map(move |one| [kind.to_owned(), cell(&one)])
    };
    let rows: Vec<_> = of("user", "users").chain(of("device", "devices")).collect();
    if rows.is_empty() { "(none)".to_owned() } else { table(["kind", "member"], rows) }
}

fn path(group: &str) -> String {
    format!("/v1/groups/{}", segment(group))
}
