//! `stentor lab measure`: a command or a service of the user's, repeated in fresh processes and compared with others.

mod caller;
mod candidate;
mod description;
mod fork;

pub(super) use caller::MeasureCallerArgs;

use super::link::server_side::ServerSideArgs;
use anyhow::Context;
use caller::RequestOptions;
use candidate::Candidate;
use clap::Args;
use fork::ForkBench;
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::comparison::{self, Comparison};
use stentor_lab::order::rounds;
use stentor_lab::runner::environment;
use stentor_lab::runner::rigged::NO_LINK;
use stentor_rig::Link;
use stentor_terminal::failure::{CommandFailure, Exit};
use stentor_terminal::output::{Output, note};
use stentor_terminal::process::asked_to_end;

/// The commit of this program's sources, set by the build.
const COMMIT: &str = env!("STENTOR_COMMIT");
/// Maximum of candidates in one comparison.
const CANDIDATES_MAX: usize = 16;

/// Measure a command or a service of your own, and compare it with others
///
/// A candidate is a URL (http:// or https://) or a shell command. Each fork is a run in fresh processes: a command from its start to its end,
/// or a caller that sends requests to the URL. Each round has one fork of each candidate in a random order. Ratios are to the first
/// candidate, with their 95 % interval over rounds.
///
/// With --link the processes of a fork are behind an emulated link of their own, which also counts the bytes by purpose. That needs root
/// and network namespaces; the exit code is 6 where they are missing. A URL then leads to the service through the link; commands reach it
/// by --forward or --serve at 10.77.0.2 (also in the environment as STENTOR_SERVER), as in stentor lab link run.
///
/// Exits 0 if each candidate has two forks that count, 1 otherwise.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab measure http://127.0.0.1:8080/
  stentor lab measure http://127.0.0.1:8080/ --link wifi --forks 10 --html page.html
  stentor lab measure http://127.0.0.1:8080/ --vs http://127.0.0.1:8081/ --link 4g --forks 10 --json
  stentor lab measure http://127.0.0.1:8080/items --method POST --header 'Content-Type: application/json' --body @item.json
  stentor lab measure https://example.org/ --link 3g --fresh
  stentor lab measure './new --quiet' --vs './old --quiet' --forks 20
  stentor lab measure 'curl -s http://10.77.0.2:8000/a' --vs 'curl -s http://10.77.0.2:8000/b' --link wifi \\
    --serve 'python3 -m http.server 8000' --wait-port 8000")]
pub(crate) struct MeasureArgs {
    /// URL or shell command to measure
    #[arg(value_name = "CANDIDATE", value_parser = candidate::parse)]
    candidate: Candidate,
    /// URL or shell command to compare with it; may be repeated
    #[arg(long, value_name = "CANDIDATE", value_parser = candidate::parse)]
    vs: Vec<Candidate>,
    /// The link: lan, wan, wifi, 4g, 3g, 2g, open; without it, the machine's own network, and no bytes
    #[arg(long, value_name = "PROFILE")]
    link: Option<String>,
    /// Fresh processes for each candidate
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    forks: u32,
    /// Seed of the order of forks, and part of the seed of each fork's link
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// A fork ends as a failure after this time
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    patience_seconds: u64,
    /// A fork does not count when 1 of 100 packets leaves the link later than this
    #[arg(long, default_value_t = 2.0, value_name = "MS", value_parser = fork::lateness)]
    gate_lateness_ms: f64,
    #[command(flatten)]
    requests: RequestOptions,
    #[command(flatten)]
    server: ServerSideArgs,
    /// Write one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
}

impl MeasureArgs {
    /// Measures, and writes the comparison.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        stentor_stage::emulated::refuse()?;
        self.check()?;
        let end = asked_to_end()?;
        let comparison = tokio::select! {
            comparison = self.measure() => comparison?,
            () = end => return Err(CommandFailure::new(Exit::Interrupted, "interrupted: nothing is written").into()),
        };
        for (file, write) in
            [(&self.html, comparison::page as fn(&Comparison) -> String), (&self.md, comparison::markdown)]
        {
            if let Some(file) = file {
                std::fs::write(file, write(&comparison))
                    .with_context(|| format!("{} cannot be written", file.display()))?;
            }
        }
        output.result(&description::object(&comparison), || description::text(&comparison))?;
        Ok(if comparison.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn check(&self) -> Result<(), CommandFailure> {
        let is_url = |candidate: &Candidate| matches!(candidate, Candidate::Service(_));
        if self.vs.len() >= CANDIDATES_MAX {
            return Err(CommandFailure::usage(format!(
                "at most {CANDIDATES_MAX} candidates can be compared at once"
            )));
        }
        if self.candidates().any(|one| is_url(one) != is_url(&self.candidate)) {
            let sentence = "a time of requests and one of a whole command cannot be compared: give only URLs, or only commands \
                 (such as curl)";
            return Err(CommandFailure::usage(sentence));
        }
        if self.link.is_none() && !self.server.forward.is_empty() {
            return Err(CommandFailure::usage("--forward leads through a link: add --link, or leave it out"));
        }
        Ok(())
    }

    fn candidates(&self) -> impl Iterator<Item = &Candidate> {
        [&self.candidate].into_iter().chain(&self.vs)
    }

    async fn measure(&self) -> anyhow::Result<Comparison> {
        let link = self.link()?;
        let bench = ForkBench {
            link: link.as_ref(),
            seed: self.seed,
            patience: std::time::Duration::from_secs(self.patience_seconds),
            late_p99_max_ns: (self.gate_lateness_ms * 1e6) as u64,
            requests: &self.requests,
            server: &self.server,
        };
        let candidates: Vec<&Candidate> = self.candidates().collect();
        let environment = environment(bench.level().word(), "", "", COMMIT);
        let mut forks = Vec::new();
        for (place, round) in rounds(candidates.len(), self.forks, self.seed) {
            let attempts = bench.attempts(place, candidates[place], round).await?;
            let last = attempts.last().and_then(|fork| fork.invalid_reason.as_ref());
            let state = last.map_or("", |_| ", does not count");
            note(&format!("round {round} of {}: {}{state}", self.forks, candidates[place].name()));
            forks.extend(attempts);
        }
        Ok(Comparison {
            candidates: candidates.iter().map(|candidate| candidate.compared()).collect(),
            link: link.map_or_else(|| NO_LINK.to_owned(), |link| link.name),
            seed: self.seed,
            environment,
            forks,
            command: self.again(),
        })
    }

    fn link(&self) -> Result<Option<Link>, CommandFailure> {
        let Some(name) = self.link.as_deref().filter(|name| *name != NO_LINK) else { return Ok(None) };
        let unknown =
            || CommandFailure::usage(format!("there is no link {name}: stentor lab list links shows them"));
        Link::profile(name).map(Some).ok_or_else(unknown)
    }

    /// Returns the command that repeats the comparison. Contents of headers and bodies may be secret and are left out.
    fn again(&self) -> String {
        let others = self.vs.iter().map(|candidate| format!(" --vs {}", quoted(candidate.name())));
        let link = self.link.iter().map(|link| format!(" --link {link}"));
        let served = self.server.serve.iter().map(|line| format!(" --serve {}", quoted(line)));
        let ports = self.server.wait_port.iter().map(|port| format!(" --wait-port {port}"));
        let forwards =
            self.server.forward.iter().map(|(port, address)| format!(" --forward {port}={address}"));
        let options: String = others.chain(link).chain(served).chain(ports).chain(forwards).collect();
        let (candidate, forks, seed) = (quoted(self.candidate.name()), self.forks, self.seed);
        format!(
            "stentor lab measure {candidate}{options} --forks {forks} --seed {seed}{}",
            self.requests.words()
        )
    }
}

/// Quotes a text for a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
