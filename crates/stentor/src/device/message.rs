//! What becomes of a message on this machine: shown to people, or handed to a command.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::output;

/// Times that a command is tried with a message.
const TRIES_MAX_COUNT: u32 = 5;
/// Wait before the second try; each further one is twice as long.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Time that a command has for a message.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
const DESKTOP_LIMIT: Duration = Duration::from_secs(5);

/// What is done with messages.
#[derive(Debug, Clone)]
pub(crate) struct Handling {
    /// The command that gets each message as JSON on its standard input.
    pub(crate) command: Option<String>,
    /// Whether to print messages as JSON, a line each.
    pub(crate) json: bool,
    /// Whether to show notifications on the desktop.
    pub(crate) desktop: bool,
}

impl Handling {
    /// Handles a message; returns whether that is done, so that it may be confirmed.
    pub(crate) async fn handle(&self, message: &Value) -> bool {
        self.show(message).await;
        match &self.command {
            Some(command) => run_until_done(command, message).await,
            None => true,
        }
    }

    async fn show(&self, message: &Value) {
        if self.json {
            let _nobody_reads = output::line(&message.to_string());
            return;
        }
        let text = |name: &str| message["notification"][name].as_str().unwrap_or_default();
        let (title, body) = (text("title"), text("body"));
        if title.is_empty() && body.is_empty() {
            let _nobody_reads = output::line(&format!("{}  {}", id(message), message["data"]));
            return;
        }
        if !(self.desktop && show_on_desktop(title, body).await) {
            let _nobody_reads = output::line(&format!("{}  {title}\n    {body}", id(message)));
        }
    }
}

fn id(message: &Value) -> &str {
    message["id"].as_str().unwrap_or_default()
}

/// Shows a notification by the desktop's own program; returns whether there is one.
async fn show_on_desktop(title: &str, body: &str) -> bool {
    let mut command = Command::new("notify-send");
    command.args(["--app-name=Stentor", "--", title, body]).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).kill_on_drop(true);
    matches!(timeout(DESKTOP_LIMIT, command.status()).await, Ok(Ok(status)) if status.success())
}

async fn run_until_done(command: &str, message: &Value) -> bool {
    let mut wait = RETRY_FIRST;
    for left in (0..TRIES_MAX_COUNT).rev() {
        match run(command, message).await {
            Ok(()) => return true,
            Err(problem) if left > 0 => {
                output::note(&format!("{}: {problem}; trying again", id(message)));
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            Err(problem) => output::note(&format!("{}: {problem}; it is not confirmed", id(message))),
        }
    }
    false
}

/// Hands a message to a command of the shell; an exit code but 0 is a failure.
async fn run(command: &str, message: &Value) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("STENTOR_MESSAGE_ID", id(message))
        .stdin(Stdio::piped())
        .kill_on_drop(true);
    let mut child = shell.spawn().map_err(|error| format!("the command cannot be started: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read is not wrong.
        let _unread = input.write_all(message.to_string().as_bytes()).await;
    }
    match timeout(COMMAND_LIMIT, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("the command ended with {status}")),
        Ok(Err(error)) => Err(format!("the command cannot be waited for: {error}")),
        Err(_) => Err(format!("the command took longer than {} s", COMMAND_LIMIT.as_secs())),
    }
}
