//! Checks the key that seals credentials: available and correct.

use super::{FindingHealth, ServerFinding};
use std::path::Path;
use stentor_node::Sealing;

const SUBJECT: &str = "sealing key";

/// Checks that every credential's key is available; a running server has its key in memory and needs the file only at its next start.
pub(super) fn look(data_dir: &Path, config: Option<&Path>) -> ServerFinding {
    let mut config = match crate::commands::config::load(config) {
        Ok(config) => config,
        Err(error) => {
            let advice = "correct the configuration, or name its file with --config";
            return ServerFinding::bad(
                SUBJECT,
                FindingHealth::Doubtful,
                format!("not looked for: {error}"),
                advice,
            );
        }
    };
    config.data_dir = data_dir.to_owned();
    match Sealing::look(&config) {
        Ok(sealing) => judge(&sealing),
        Err(error) => {
            let advice =
                "run the doctor as the user of the server, with its configuration (--config) and environment";
            ServerFinding::bad(SUBJECT, FindingHealth::Doubtful, error.to_string(), advice)
        }
    }
}

fn judge(sealing: &Sealing) -> ServerFinding {
    if let Some(problem) = sealing.problem() {
        let advice = "without it the server does not start: give the doctor the server's configuration (--config) and \
                      environment, or bring the key file back";
        return ServerFinding::bad(SUBJECT, FindingHealth::Broken, problem, advice);
    }
    match sealing.keys.first() {
        None => ServerFinding::good(SUBJECT, "none yet: the first start makes one"),
        Some(present) => {
            let count: u64 = sealing.wanted.values().sum();
            ServerFinding::good(
                SUBJECT,
                format!("{present} from {}; {count} credentials are sealed", sealing.source),
            )
        }
    }
}
