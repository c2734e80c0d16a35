//! The operator's command: a program that receives one message as JSON on its standard input.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use super::handover::HandoverRefusal;

/// A program and its arguments; no shell interprets them.
#[derive(Debug, Clone)]
pub(super) struct OperatorCommand {
    program: String,
    arguments: Vec<String>,
    /// Its complete environment. The server's own is not inherited, because it may contain secrets.
    environment: Vec<(OsString, OsString)>,
    timeout: Duration,
}

impl OperatorCommand {
    /// Creates a command from its words and its environment; `None` without words.
    pub(super) fn new(
        words: &[String],
        environment: Vec<(OsString, OsString)>,
        timeout: Duration,
    ) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self { program: program.clone(), arguments: arguments.to_vec(), environment, timeout })
    }

    /// Runs it with a message. The message is handed over if the command exits with 0 in time.
    pub(super) async fn run(&self, body: String) -> Result<(), HandoverRefusal> {
        match timeout(self.timeout, self.status(body)).await {
            Err(_) => Err(HandoverRefusal::new(format!("the command ran longer than {:?}", self.timeout))),
            Ok(Err(error)) => Err(HandoverRefusal::new(format!("the command cannot be run: {error}"))),
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(HandoverRefusal::new(format!("the command ended with {status}"))),
        }
    }

    async fn status(&self, body: String) -> std::io::Result<std::process::ExitStatus> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A command that runs too long is killed with the call.
            .kill_on_drop(true)
            .spawn()?;
        // Closed at the end of this block, so that a program that reads to the end does not wait for more.
        if let Some(mut input) = child.stdin.take() {
            // A program that does not read may still succeed.
            let _unread = input.write_all(body.as_bytes()).await;
        }
        child.wait().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UpstreamConfig;

    fn shell(script: &str) -> OperatorCommand {
        let words = ["/bin/sh", "-c", script].map(str::to_owned);
        OperatorCommand::new(&words, environment(), Duration::from_secs(20)).expect("a command")
    }

    fn environment() -> Vec<(OsString, OsString)> {
        let config = UpstreamConfig {
            command_environment: vec!["HOOK_KEY_FILE=/etc/hooks/key=1".to_owned(), "HOME".to_owned()],
            ..UpstreamConfig::default()
        };
        config.environment_of_command()
    }

    #[tokio::test]
    async fn its_environment_is_what_is_named_and_nothing_else_of_the_servers() {
        // The test's own variables stand for the server's: cargo and the shell have set more than those.
        let script = r#"test "$HOOK_KEY_FILE" = /etc/hooks/key=1 && test -n "$HOME" && test -n "$PATH" &&
            test -z "$(env | grep -vE '^(PATH|LANG|LC_ALL|TZ|TMPDIR|HOOK_KEY_FILE|HOME|PWD|OLDPWD|SHLVL|_)=')""#;
        let named = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "HOME", "PWD", "OLDPWD", "SHLVL", "_"];
        let mut own = std::env::vars().map(|(name, _)| name);
        assert!(
            own.any(|name| !named.contains(&name.as_str())),
            "this test is about a variable of the test's"
        );
        assert_eq!(shell(script).run(String::new()).await, Ok(()));
    }

    #[tokio::test]
    async fn it_reads_the_message_and_zero_takes_it_over() {
        let exact = shell(r#"[ "$(cat)" = '{"a":1}' ]"#);
        assert_eq!(exact.run(r#"{"a":1}"#.to_owned()).await, Ok(()));
        let refused = exact.run("{}".to_owned()).await.expect_err("a refusal");
        assert!(refused.reason.contains("exit status: 1"), "{refused:?}");
    }

    #[tokio::test]
    async fn one_that_runs_too_long_or_is_not_there_is_refused() {
        let slow = OperatorCommand { timeout: Duration::from_millis(50), ..shell("sleep 20") };
        assert!(slow.run(String::new()).await.expect_err("a refusal").reason.contains("longer than"));
        let words = ["/nowhere/at/all".to_owned()];
        let missing = OperatorCommand::new(&words, Vec::new(), Duration::from_secs(20)).expect("a command");
        assert!(missing.run(String::new()).await.expect_err("a refusal").reason.contains("cannot be run"));
        assert!(OperatorCommand::new(&[], Vec::new(), Duration::from_secs(1)).is_none());
    }
}
