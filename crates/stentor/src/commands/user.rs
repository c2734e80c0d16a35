//! `stentor user`: people, by the app's own ids.

use crate::client::segment;
use crate::connection::ConnectionArgs;
use crate::output::{Output, facts, listing, paged};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Manage users, known by the app's own ids
#[derive(Debug, Args)]
pub(crate) struct UserArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    /// List the users, page by page
    #[command(after_help = "Example:\n  stentor user list --limit 20")]
    List {
        /// The most users to show
        #[arg(long, default_value_t = 100)]
        limit: u32,
        /// Continue after the previous page; the value is its `next`
        #[arg(long)]
        after: Option<String>,
    },
    /// Show one user with devices
    #[command(after_help = "Example:\n  stentor user show u1")]
    Show {
        /// The user
        user: String,
    },
    /// Create a user; registering a device with a user does the same
    #[command(after_help = "Example:\n  stentor user create u1")]
    Create {
        /// The user
        user: String,
    },
    /// Delete a user; their devices stay, without an owner
    #[command(after_help = "Example:\n  stentor user delete u1")]
    Delete {
        /// The user
        user: String,
    },
}

impl UserArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connection.app_client().await?;
        let path = |user: &str| format!("/v1/users/{}", segment(user));
        match self.command {
            UserCommand::List { limit, after } => {
                let mut query = vec![("limit", limit.to_string())];
                query.extend(after.map(|after| ("after", after)));
                let page = client.get_with("/v1/users", &query).await?;
                output.result(&page, || {
                    paged(listing(&page["users"], ["external_id", "created_at"]), &page, "--after")
                })
            }
            UserCommand::Show { user } => {
                let user = client.get(&path(&user)).await?;
                output.result(&user, || facts(&user))
            }
            UserCommand::Create { user } => {
                let made = client.put(&path(&user), &Value::Null).await?;
                output.result(&made, || facts(&made))
            }
            UserCommand::Delete { user } => {
                client.delete(&path(&user)).await?;
                output.result(&json!({"deleted": user}), || format!("deleted {user}"))
            }
        }
    }
}
