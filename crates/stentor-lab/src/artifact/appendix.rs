//! The text of an artifact: claims, experiments, machine, and the terms by which to judge a repetition.

use super::Artifact;
use crate::claims::ClaimVerdict;
use crate::document::TextTable;

/// Repetition in the terms of ACM's policy on artifact review and badging, version 1.1.
const TERMS: &str = "\
The terms are those of the ACM (*Artifact Review and Badging*, version 1.1, 24 August 2020):

| term | team | set-up | here |
| --- | --- | --- | --- |
| repeatability | same | same | the intervals over forks, and further runs by the team that made this artifact |
| reproducibility | different | same | your run of this artifact |
| replicability | different | different | the study itself: its team, software and machines are not those of the paper |

So the study is a **replication** of the paper, and no reproduction of it: it judges by the authors' published figures and runs no program \
of theirs. If you run `./reproduce`, you try to **reproduce** the results of this artifact. The ACM's badges (Artifacts Available, Artifacts \
Evaluated, Results Reproduced, Results Replicated) are awarded by reviewers; this artifact has none.";

const COMMAND: &str = "\
On an empty Debian 12 or newer of the same processor architecture, as root, with access to Debian's packages:

```sh
./reproduce
```

It checks SHA256SUMS, installs the packages below, builds the foreign subjects (Maven downloads their libraries), repeats E1, judges the \
claims (E2), and writes `again.html`, `again.md` and `again-claims.json`. A link needs root and `/dev/net/tun`; without it every record \
names the lesser level. Times depend on the machine. A verdict is reproduced if it is the expected one; `undecided` in one of two runs means that \
the forks of that run were too few.";

/// Writes README.md.
#[must_use]
pub fn appendix(artifact: &Artifact) -> String {
    let paper = match artifact.paper.as_str() {
        "" => "A study of its author's own, without a paper.".to_owned(),
        title => format!("A replication of *{title}*."),
    };
    let claims =
        (!artifact.claims.is_empty()).then(|| format!("## Claims\n\n{}\n", claims(artifact).markdown()));
    let parts = [
        format!("# Artifact of {}, run again\n\n{paper}\n", artifact.study),
        format!("## One command\n\n{COMMAND}\n"),
        format!("## Terms\n\n{TERMS}\n"),
        claims.unwrap_or_default(),
        format!("## Experiments\n\n{}\n", experiments(artifact).markdown()),
        format!("## Machine of the run\n\n{}\n", machine(artifact).markdown()),
        format!("## Files\n\n{}\n\n{}\n", FILES, captures(artifact)),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

const FILES: &str = "\
| file | content |
| --- | --- |
| `artifact.json` | this page as data |
| `claims.json` | the claims of all studies, with their stable ids |
| `run/` | plan, records, and, where they were kept, samples and captures of the run |
| `report.html`, `report.md`, `figures.csv` | the report of the run |
| `bin/` | the program that made it |
| `subjects/` | definitions and sources of foreign subjects |
| `source.tar.gz` | the sources of the program, if it was made beside a repository |
| `CITATION.cff`, `codemeta.json` | how to cite the program |
| `LICENSE`, `LICENSES.md` | licences |
| `SHA256SUMS` | checksums of all other files |
| `ro-crate-metadata.json` | the description of this folder as an RO-Crate 1.1 |";

/// Writes LICENSES.md.
#[must_use]
pub fn licenses(artifact: &Artifact) -> String {
    let subjects = artifact.subjects.iter().map(|id| {
        [id.clone(), "its libraries are downloaded by `./reproduce` under their own licences, and are not part of this folder".to_owned()]
    });
    let own = ["program, records, report, claims".to_owned(), "Apache License 2.0 (LICENSE)".to_owned()];
    let paper = [
        "figures and quotations of the paper in claims.json and report.md".to_owned(),
        "the authors'; cited for review with their place in the paper".to_owned(),
    ];
    let rows = [own].into_iter().chain((!artifact.paper.is_empty()).then_some(paper)).chain(subjects);
    format!("# Licences\n\n{}\n", TextTable::new(["part", "licence"], rows).markdown())
}

fn claims(artifact: &Artifact) -> TextTable {
    let header = ["", "id", "claim", "place", "the paper's own data", "expected here", "experiment"];
    let word = |verdict: Option<ClaimVerdict>| verdict.map_or("not run", ClaimVerdict::word).to_owned();
    let rows = artifact.claims.iter().map(|one| {
        [
            one.number.clone(),
            one.id.clone(),
            one.text.clone(),
            one.source.clone(),
            word(Some(one.published)),
            word(one.expected),
            one.experiments.join(", "),
        ]
    });
    TextTable::new(header, rows)
}

fn experiments(artifact: &Artifact) -> TextTable {
    let header = ["", "experiment", "command", "minutes of a person", "minutes of the machine"];
    let rows = artifact.experiments.iter().map(|one| {
        let (human, machine) = (one.human_minutes.to_string(), one.machine_minutes.to_string());
        [one.number.clone(), one.text.clone(), format!("`{}`", one.command), human, machine]
    });
    TextTable::new(header, rows)
}

fn machine(artifact: &Artifact) -> TextTable {
    let packages: Vec<&str> = artifact.packages.iter().map(String::as_str).collect();
    let further = [
        ("program", format!("stentor-lab {} ({})", artifact.version, artifact.commit)),
        ("end of the run", artifact.ended.clone()),
        ("Debian packages", if packages.is_empty() { "none".to_owned() } else { packages.join(" ") }),
    ];
    let facts = artifact.machine.iter().map(|(name, fact)| (name.as_str(), fact.clone())).chain(further);
    TextTable::new(["", "fact"], facts.map(|(name, fact)| [name.to_owned(), fact]))
}

fn captures(artifact: &Artifact) -> String {
    let captures = &artifact.captures;
    match captures.why_missing.as_str() {
        "" => format!("There is a capture of packets (pcap) of each of the {} cells.", captures.cells),
        why => format!("{why}."),
    }
}
