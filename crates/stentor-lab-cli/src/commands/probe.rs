//! `stentor lab probe`: the feature tables of a study, beside the results of probes of our own faces, or of other subjects.

use super::subject::foreign::SubjectFolderArgs;
use anyhow::Context;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stentor_lab::claims::Dossier;
use stentor_lab::probes::{
    self, PaperCell, PaperProtocol, ProbeAnswer, ProbeContext, ProbeKind, ProbeResult, Probed, STUDY,
    TrialFace, rows,
};
use stentor_lab::runner::roster;
use stentor_lab::subject::protocol::SubjectRole;
use stentor_lab::subject::{Definition, SubjectError, catalogue};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, table};

/// The id of the server itself as a subject.
const SERVER: &str = "stentor";
/// Its faces for the protocols of the tables.
const SERVED_FACES: [(&str, PaperProtocol); 3] = [
    ("soap/server/stentor", PaperProtocol::Soap),
    ("xmlrpc/server/stentor", PaperProtocol::XmlRpc),
    ("rest+json/server/stentor", PaperProtocol::Rest),
];

/// Try the features in a study's tables, and compare the answers with the paper's
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab probe cai-2009
  stentor lab probe cai-2009 --json
  stentor lab probe cai-2009 --subject soap/ext-soap --subject rest+xml/plain
  stentor lab probe cai-2009 --subject stentor
  stentor lab probe cai-2009 --definition my-subject.toml
  stentor lab probe cai-2009 --out study

Three subjects of ours (SOAP, XML-RPC, REST with XML) are started and called over loopback; nothing is timed. Each answer
is printed with the observation. Answers that are not trials are marked: documented, interviews (counted statements of the paper)
or proxy (counted lines, files or names). --subject and --definition call other subjects, with a fresh process for each trial;
a feature that no exchange can show is \"not probed\". --subject stentor calls the
SOAP, XML-RPC and REST faces of the server itself. Exits 0 when every probe finished, with any answer.")]
pub(crate) struct ProbeArgs {
    /// Name of the study
    #[arg(value_parser = PossibleValuesParser::new([STUDY]))]
    study: String,
    /// Folder of the subjects, for a count of their sources; otherwise `lab/subjects` here, above, or above this program
    #[arg(long, value_name = "DIR")]
    subjects: Option<PathBuf>,
    /// Probe this subject instead of ours, by its id or the beginning of it; may be repeated
    #[arg(long, value_name = "ID")]
    subject: Vec<String>,
    /// Probe a subject of yours, by its file; may be repeated
    #[arg(long, value_name = "FILE")]
    definition: Vec<PathBuf>,
    /// Probe our subjects and the server itself, and store the results beside the records of a run, for stentor lab report
    #[arg(long, value_name = "DIR", conflicts_with_all = ["subject", "definition"])]
    out: Option<PathBuf>,
}

impl ProbeArgs {
    /// Lists the subjects to be probed instead of ours.
    fn others(&self) -> anyhow::Result<Vec<Definition>> {
        let place = SubjectFolderArgs { subjects: self.subjects.clone() };
        let of_files = self.definition.iter().map(|file| {
            let entry =
                catalogue::entry(file.clone()).map_err(|error| CommandFailure::usage(error.to_string()))?;
            Ok(entry.definition)
        });
        let others = self.subject.iter().map(|id| place.ready(id)).chain(of_files);
        let others: Vec<Definition> = others.collect::<anyhow::Result<_>>()?;
        if let Some(one) = others.iter().find(|one| !one.roles.contains(&SubjectRole::Server)) {
            return Err(
                CommandFailure::usage(format!("{} is a client, and probes call servers", one.id)).into()
            );
        }
        for one in &others {
            let dialect = one.dialect()?;
            let why = || format!("{}: {}", one.id, SubjectError::Unprobed(dialect.name()));
            PaperProtocol::of(dialect).ok_or_else(|| CommandFailure::usage(why()))?;
        }
        Ok(others)
    }

    /// Runs the probes and prints the results.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if self.subject == [SERVER] {
            let probes = crate::faces::trials::probe().await?;
            let of = |label: &str| probes.iter().filter(|one| one.subject == label).cloned().collect();
            let results = SERVED_FACES.map(|(id, protocol)| (id, of(protocol.label())));
            return print_probes(&self.study, &results, output);
        }
        let dossier = dossier()?;
        let others = self.others()?;
        if !others.is_empty() {
            return ask(&self.study, &others, output).await;
        }
        let probed = match &self.out {
            Some(out) => keep(out, self.subjects.as_deref()).await?,
            None => all(&dossier, self.subjects.as_deref()).await?,
        };
        let rows = rows(dossier.figures(), &probed.probes);
        let has_all_run = probed.have_all_run();
        let object = json!({ "study": self.study, "ok": has_all_run, "rows": rows });
        output.result(&object, || describe(&rows))?;
        Ok(if has_all_run { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Probes subjects that are not ours.
async fn ask(study: &str, others: &[Definition], output: Output) -> anyhow::Result<ExitCode> {
    let directory = directory()?;
    let context = ProbeContext { directory: directory.path().to_owned(), ..ProbeContext::default() };
    let mut results: Vec<(&str, Vec<ProbeResult>)> = Vec::new();
    for definition in others {
        let of_one = probes::run_on(definition, &context).await;
        let of_one =
            of_one.map_err(|error| CommandFailure::not_done(format!("{}: {error}", definition.id)))?;
        results.push((&definition.id, of_one));
    }
    print_probes(study, &results, output)
}

/// Prints the results of subjects that are probed instead of ours.
fn print_probes(
    study: &str,
    results: &[(&str, Vec<ProbeResult>)],
    output: Output,
) -> anyhow::Result<ExitCode> {
    let have_all_run = results.iter().flat_map(|(_, probes)| probes).all(ProbeResult::has_run);
    let objects: Vec<Value> =
        results.iter().map(|(id, probes)| json!({ "id": id, "probes": probes })).collect();
    output.result(&json!({ "study": study, "ok": have_all_run, "subjects": objects }), || {
        let rows = results.iter().flat_map(|(id, probes)| probes.iter().map(|one| row(id, one)));
        table(["feature", "probe", "subject", "answer", "observation"], rows)
    })?;
    Ok(if have_all_run { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(id: &str, result: &ProbeResult) -> [String; 5] {
    [result.feature.clone(), result.id.clone(), id.to_owned(), result.answer_text(), result.evidence.clone()]
}

fn directory() -> anyhow::Result<tempfile::TempDir> {
    tempfile::tempdir().context("a directory for a certificate cannot be made")
}

/// Opens the study that has tables of features.
fn dossier() -> anyhow::Result<Dossier> {
    Dossier::open(STUDY)?.context("the study does not come with the program")
}

/// Runs the probes, and stores the results in the directory of a run.
pub(super) async fn keep(out: &Path, subjects: Option<&Path>) -> anyhow::Result<Probed> {
    let server = crate::faces::trials::probe().await?;
    let probed = all(&dossier()?, subjects).await?.with_server(server);
    probed.write(out)?;
    Ok(probed)
}

/// Starts our faces, runs every probe on them, and ends them.
async fn all(dossier: &Dossier, subjects: Option<&Path>) -> anyhow::Result<Probed> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let words = ["subject", "speak"].map(str::to_owned);
    let speak: Vec<String> = [program.display().to_string()].into_iter().chain(words).collect();
    let directory = directory()?;
    let here = std::env::current_dir().ok();
    let places = here.iter().map(PathBuf::as_path).chain([program.as_path()]);
    let context = ProbeContext {
        figures: dossier.figures().clone(),
        sources: subjects.map(Path::to_owned).or_else(|| catalogue::folder(places)),
        directory: directory.path().to_owned(),
    };
    let mut faces = Vec::new();
    for protocol in PaperProtocol::ALL {
        faces.push(start(protocol, &speak).await?);
    }
    let results = probes::run(&mut faces, &context).await;
    for face in faces {
        face.end().await;
    }
    Ok(Probed::of(results))
}

async fn start(protocol: PaperProtocol, speak: &[String]) -> anyhow::Result<TrialFace> {
    let dialect = protocol.dialect()?;
    let ours =
        roster::ours(speak).into_iter().find(|one| one.id.starts_with(&format!("{}/", dialect.name())));
    let definition = ours.with_context(|| format!("no subject of ours speaks {}", dialect.name()))?;
    Ok(TrialFace::start(protocol, &definition).await?)
}

fn describe(rows: &[PaperCell]) -> String {
    let cells = rows.iter().map(|row| {
        let answers = row.probes.iter().map(answer).collect::<Vec<_>>().join("; ");
        [row.table.clone(), row.feature.clone(), row.subject.clone(), row.paper.clone(), answers]
    });
    let tables = table(["table", "feature", "protocol", "paper", "probes"], cells);
    let seen = rows.iter().flat_map(|row| row.probes.iter().map(evidence));
    let seen = table(["probe", "protocol", "answer", "how", "observation"], seen);
    format!("{tables}\n\n{seen}")
}

/// Formats a result briefly; a result without a trial is marked with its kind.
fn answer(result: &ProbeResult) -> String {
    let mark =
        if result.kind == ProbeKind::Measured { String::new() } else { format!(" [{}]", result.kind.word()) };
    match result.answer {
        ProbeAnswer::Number(_) => result.answer_text() + &mark,
        ProbeAnswer::Word(_) => format!("{} {}{mark}", result.id, result.answer_text()),
    }
}

fn evidence(result: &ProbeResult) -> [String; 5] {
    [
        result.id.clone(),
        result.subject.clone(),
        result.answer_text(),
        result.kind.word().into(),
        result.evidence.clone(),
    ]
}
