//! Handling of a message on this machine: shown to people, or passed to a command.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::output;

/// Most attempts of a command with a message.
const TRIES_MAX_COUNT: u32 = 5;
/// Delay before the second attempt; it doubles with each further one.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// Timeout of a command for a message.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
const DESKTOP_LIMIT: Duration = Duration::from_secs(5);
/// Environment variables that programs inherit. All others are withheld, because the environment may contain the key with which devices
/// register.
const TAKEN_OVER: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "TERM",
    "DISPLAY",
    "XAUTHORITY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "STATE_DIRECTORY",
    // The folder of this device, so that a command can send in its name.
    "STENTOR_DEVICE_DIR",
];

/// The handling of messages.
#[derive(Debug, Clone)]
pub(crate) struct Handling {
    /// The command that gets each message as JSON on its standard input.
    pub(crate) command: Option<String>,
    /// Environment variables that the command inherits in addition to [`TAKEN_OVER`].
    pub(crate) variables: Vec<String>,
    /// True to print each message as a line of JSON.
    pub(crate) json: bool,
    /// True to show notifications on the desktop.
    pub(crate) desktop: bool,
}

impl Handling {
    /// Handles a message; returns true if it is done and may be confirmed.
    pub(crate) async fn handle(&self, message: &Value) -> bool {
        self.show(message).await;
        match &self.command {
            Some(command) => self.run_until_done(command, message).await,
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

    async fn run_until_done(&self, command: &str, message: &Value) -> bool {
        let mut wait = RETRY_FIRST;
        for left in (0..TRIES_MAX_COUNT).rev() {
            match run(command, &self.variables, message).await {
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
}

fn id(message: &Value) -> &str {
    message["id"].as_str().unwrap_or_default()
}

/// Returns the environment of a program started here.
fn environment(more: &[String]) -> Vec<(&str, OsString)> {
    let names = TAKEN_OVER.into_iter().chain(more.iter().map(String::as_str));
    names.filter_map(|name| Some((name, std::env::var_os(name)?))).collect()
}

/// Shows a notification by the desktop's own program; returns false if there is none.
async fn show_on_desktop(title: &str, body: &str) -> bool {
    let mut command = Command::new("notify-send");
    command.env_clear().envs(environment(&[]));
    command.args(["--app-name=Stentor", "--", title, body]).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).kill_on_drop(true);
    matches!(timeout(DESKTOP_LIMIT, command.status()).await, Ok(Ok(status)) if status.success())
}

/// Passes a message to a shell command; an exit code other than 0 is a failure.
async fn run(command: &str, variables: &[String], message: &Value) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env_clear()
        .envs(environment(variables))
        .env("STENTOR_MESSAGE_ID", id(message))
        .stdin(Stdio::piped())
        .kill_on_drop(true);
    let mut child = shell.spawn().map_err(|error| format!("the command cannot be started: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input is not wrong.
        let _unread = input.write_all(message.to_string().as_bytes()).await;
    }
    match timeout(COMMAND_LIMIT, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("the command ended with {status}")),
        Ok(Err(error)) => Err(format!("the command cannot be waited for: {error}")),
        Err(_) => Err(format!("the command took longer than {} s", COMMAND_LIMIT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Variables that a shell sets by itself.
    const SHELL_OWN: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

    #[tokio::test]
    async fn a_command_finds_what_every_program_needs_and_what_is_named() {
        // Any variable of this program serves as an example of the key of the service's file.
        let is_foreign =
            |name: &String| !TAKEN_OVER.contains(&name.as_str()) && !SHELL_OWN.contains(&name.as_str());
        let is_plain = |name: &String| name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
        let mut variables = std::env::vars().map(|(name, _)| name);
        let other =
            variables.find(|name| is_foreign(name) && is_plain(name)).expect("a variable of this program");
        let message = json!({"id": "msg_1"});
        let needed =
            format!(r#"test -n "$PATH" && test "$STENTOR_MESSAGE_ID" = msg_1 && test -z "${{{other}+set}}""#);
        assert_eq!(run(&needed, &[], &message).await, Ok(()));
        assert_eq!(run(&format!(r#"test -n "${{{other}+set}}""#), &[other], &message).await, Ok(()));
    }
}
