//! The one command of an artifact.

use super::Artifact;

/// Writes the script that repeats the run on an empty Debian.
#[must_use]
pub fn reproduce(artifact: &Artifact) -> String {
    let packages: Vec<&str> = artifact.packages.iter().map(String::as_str).collect();
    let install = format!("ca-certificates {}", packages.join(" "));
    let builds: String = artifact
        .subjects
        .iter()
        .map(|id| format!("bin/stentor-lab subject build --subjects subjects {id}\n"))
        .collect();
    let run = artifact.experiments.first().map(|one| one.command.as_str()).unwrap_or_default();
    let judge = match artifact.experiments.get(1) {
        Some(_) => format!(
            "bin/stentor-lab claims {study} --record again --json > again-claims.json || true\n\
             bin/stentor-lab claims {study} --record again || true\n",
            study = artifact.study
        ),
        None => String::new(),
    };
    format!(
        "#!/bin/sh\n\
         # Repeats the run of this artifact, and writes again.html beside it.\n\
         set -eu\n\
         cd \"$(dirname \"$0\")\"\n\
         sha256sum --check --quiet SHA256SUMS\n\
         if [ \"$(id -u)\" = 0 ] && command -v apt-get > /dev/null; then\n    \
             apt-get update -qq\n    \
             DEBIAN_FRONTEND=noninteractive apt-get install -y -qq {install} > /dev/null\n\
         else\n    \
             echo 'not root on Debian: packages are not installed, and there is no link' >&2\n\
         fi\n\
         {builds}\
         status=0\n\
         {run} || status=$?\n\
         bin/stentor-lab report again --html again.html --md again.md\n\
         {judge}\
         bin/stentor-lab compare run again || true\n\
         echo 'the repetition: again.html; the run of the artifact: report.html'\n\
         exit \"$status\"\n",
        install = install.trim_end()
    )
}
