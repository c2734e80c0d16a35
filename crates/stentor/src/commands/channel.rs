//! `stentor channel`: broadcast channels of Live Activities.

use crate::client::segment;
use crate::connection::ConnectionArgs;
use crate::output::{Output, cell, listing};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::json;
use stentor_server::words;

const PATH: &str = "/v1/live-activity-channels";

/// Manage broadcast channels of Live Activities at Apple
#[derive(Debug, Args)]
pub(crate) struct ChannelArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: ChannelCommand,
}

#[derive(Debug, Subcommand)]
enum ChannelCommand {
    /// Create a channel; Apple chooses its name
    #[command(
        after_help = "Examples:\n  stentor channel create\n  stentor channel create --storage latest --json"
    )]
    Create {
        /// Messages that the channel keeps for phones that are away
        #[arg(long, default_value = "none", value_parser = PossibleValuesParser::new(words::CHANNEL_STORAGES))]
        storage: String,
    },
    /// List the channels, as Apple lists them
    #[command(after_help = "Example:\n  stentor channel list")]
    List,
    /// Delete a channel for good
    #[command(after_help = "Example:\n  stentor channel delete dHN0LXNyY2gtY2hubA==")]
    Delete {
        /// The channel
        channel: String,
    },
}

impl ChannelArgs {
    /// Runs the command.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connection.app_client().await?;
        match self.command {
            ChannelCommand::Create { storage } => {
                let made = client.post(PATH, &json!({ "storage": storage })).await?;
                output.result(&made, || cell(&made["channel"]))
            }
            ChannelCommand::List => {
                let channels = client.get(PATH).await?;
                output.result(&channels, || listing(&channels["channels"], ["channel"]))
            }
            ChannelCommand::Delete { channel } => {
                client.delete(&format!("{PATH}/{}", segment(&channel))).await?;
                output.result(&json!({"deleted": channel}), || format!("deleted {channel}"))
            }
        }
    }
}
