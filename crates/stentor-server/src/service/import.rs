//! Import of devices as a stream of lines. A bad line affects only itself, memory is bounded, and reading, parsing and writing overlap.

mod batch;
mod lines;
mod parse;
mod report;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::{FuturesOrdered, StreamExt};
use stentor_core::device::Registration;
use stentor_core::id::AppId;
use stentor_core::ports::store::StoreError;
use tokio::sync::mpsc;

use super::devices::DeviceCounts;
use super::{Caller, ErrorCode, Problem, Service, ServiceCounters, ServiceResult};
use crate::contract::Serve;
use crate::contract::import::{ImportRequest, ImportResult};
use crate::contract::table::ImportDevices;
use crate::shares::ShareExhausted;
use batch::Parsed;
pub use lines::LINE_MAX_BYTES;
pub use parse::Format;
use parse::Importer;
pub use report::{ERRORS_MAX_COUNT, ImportProblem, ImportReport};

/// Blocks that wait for the parser.
const BLOCKS_MAX_COUNT: usize = 2;
/// Batches that wait for the writer.
const BATCHES_MAX_COUNT: usize = 1;
/// Batches at the store: one is written while the next is sorted.
const AT_THE_STORE_MAX_COUNT: usize = 2;

/// Options of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportOptions {
    /// Format of the lines.
    pub format: Format,
    /// Checks everything and stores nothing.
    pub dry_run: bool,
}

impl Serve<ImportDevices> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (): (),
        ImportRequest { query, lines }: ImportRequest,
    ) -> ServiceResult<ImportResult> {
        let missing = || Problem::field("format", "is missing: ndjson or csv");
        let format = query.format.as_deref().ok_or_else(missing)?.parse()?;
        let options = ImportOptions { format, dry_run: query.dry_run };
        Ok(self.import(caller, options, lines).await?.into())
    }
}

impl Service {
    /// Registers every valid line of the body and reports the invalid ones.
    pub async fn import<S, E>(
        &self,
        caller: Caller,
        options: ImportOptions,
        body: S,
    ) -> ServiceResult<ImportReport>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + Unpin,
        E: Into<Problem>,
    {
        caller.allow::<ImportDevices>()?;
        let _place = self.imports.take(caller.app(), 1).map_err(too_many_imports)?;
        let (to_parse, blocks) = mpsc::channel(BLOCKS_MAX_COUNT);
        let (to_write, batches) = mpsc::channel(BATCHES_MAX_COUNT);
        let importer = Importer::new(options.format);
        let batch_lines = self.settings.limits.import_batch_max_lines;
        // The three tasks end each other: one that fails drops its channel, and the others stop when they find it closed.
        let (read, parsed, written) = tokio::join!(
            lines::read(body, to_parse),
            parse_blocks(importer, batch_lines, blocks, to_write),
            self.write_batches(caller, options.dry_run, batches),
        );
        // The writer's failure comes first, because it reports how many lines were registered.
        let report = written?;
        read.and(parsed).map_err(|problem| broken_off(problem, &report))?;
        ServiceCounters::add(&self.counters.import_lines_failed, report.failed);
        Ok(report)
    }

    /// Returns the number of running imports.
    #[must_use]
    pub fn imports_at_work(&self) -> usize {
        self.imports.taken()
    }

    async fn write_batches(
        &self,
        caller: Caller,
        dry_run: bool,
        mut batches: mpsc::Receiver<Parsed>,
    ) -> ServiceResult<ImportReport> {
        let app = caller.app();
        let write = |batch: Parsed| async move {
            let answer = self.write_first(app, &batch.registrations, dry_run).await;
            (batch, answer)
        };
        let mut report = ImportReport { dry_run, ..ImportReport::default() };
        let (mut at_the_store, mut is_over) = (FuturesOrdered::new(), false);
        while !(is_over && at_the_store.is_empty()) {
            let has_room = !is_over && at_the_store.len() < AT_THE_STORE_MAX_COUNT;
            tokio::select! {
                // Written batches are recorded before new ones begin: a batch that was only partly written affects the next one.
                biased;
                Some((batch, answer)) = at_the_store.next() => {
                    let was_torn = self.note(app, &batch, answer, &mut report).await?;
                    while was_torn && let Some((batch, answer)) = at_the_store.next().await {
                        self.note(app, &batch, answer, &mut report).await?;
                        // Of two lines for one token the later one wins, so a batch that overtook the rest of a partly written one is
                        // written again.
                        let again = self.write_apart(app, &batch, 0, None, dry_run).await;
                        again.broken.map_or(Ok(()), |error| Err(interrupted(error, &report)))?;
                    }
                }
                batch = batches.recv(), if has_room => match batch {
                    Some(batch) => {
                        if !dry_run {
                            self.open_gateway_for(caller, &batch.registrations).await?;
                            self.respell(app, &batch.registrations).await?;
                        }
                        at_the_store.push_back(write(batch));
                    }
                    None => is_over = true,
                },
            }
        }
        // The store refuses lines later than the parser, so the errors are out of order.
        report.errors.sort_by_key(|problem| problem.line);
        Ok(report)
    }

    /// Registers as many of the first registrations as the store takes at once; in a dry run it only validates them.
    async fn write_first(
        &self,
        app: AppId,
        some: &[Registration],
        dry_run: bool,
    ) -> Result<StoredLines, StoreError> {
        if dry_run {
            let lines = self.store.validate_some_registrations(app, some, self.now()).await?;
            return Ok(StoredLines { lines, counts: DeviceCounts::default() });
        }
        let registered = self.store.register_some(app, some, self.now()).await?;
        Ok(StoredLines { lines: registered.len(), counts: DeviceCounts::of(&registered) })
    }

    /// Records the result of a batch. Returns true if the store did not take all of it at once.
    async fn note(
        &self,
        app: AppId,
        batch: &Parsed,
        answer: Result<StoredLines, StoreError>,
        report: &mut ImportReport,
    ) -> ServiceResult<bool> {
        report.take(batch);
        let dry_run = report.dry_run;
        let (was_torn, outcome) = match answer {
            Ok(StoredLines { lines, counts }) if lines == batch.registrations.len() => {
                (false, BatchOutcome { counts, ..BatchOutcome::default() })
            }
            Ok(StoredLines { lines, counts }) => {
                let rest = self.write_apart(app, batch, lines, None, dry_run).await;
                (true, BatchOutcome { counts: counts.and(rest.counts), ..rest })
            }
            Err(refusal) => (true, self.write_apart(app, batch, 0, Some(refusal), dry_run).await),
        };
        self.count_devices(outcome.counts);
        report.count(outcome.counts);
        outcome.refused.into_iter().for_each(|problem| report.refuse_valid(problem));
        outcome.broken.map_or(Ok(was_torn), |error| Err(interrupted(error, report)))
    }

    /// Registers a batch from one of its lines on. A range that the store refuses, or has refused, is halved until the refused lines are
    /// found.
    async fn write_apart(
        &self,
        app: AppId,
        batch: &Parsed,
        from: usize,
        mut refusal: Option<StoreError>,
        dry_run: bool,
    ) -> BatchOutcome {
        let mut outcome = BatchOutcome::default();
        // A stack with the first half on top, so that lines are registered in order.
        let mut ranges: Vec<_> = Some(from..batch.registrations.len()).into_iter().collect();
        while let Some(range) = ranges.pop() {
            let some = &batch.registrations[range.clone()];
            let answer = match refusal.take() {
                Some(refusal) => Err(refusal),
                None => self.write_first(app, some, dry_run).await,
            };
            match answer {
                Ok(StoredLines { lines, counts }) => {
                    outcome.counts = outcome.counts.and(counts);
                    ranges.extend(Some(range.start + lines..range.end).filter(|rest| !rest.is_empty()));
                }
                Err(error) if !belongs_to_a_line(&error) => {
                    return BatchOutcome { broken: Some(error), ..outcome };
                }
                Err(error) if some.len() == 1 => {
                    outcome.refused.push(ImportProblem::new(batch.lines[range.start], error.into()));
                }
                Err(_) => {
                    let middle = range.start + range.len() / 2;
                    ranges.extend([middle..range.end, range.start..middle]);
                }
            }
        }
        outcome
    }
}

/// The result of one call of the store.
struct StoredLines {
    /// Number of lines taken, from the first on.
    lines: usize,
    /// Numbers of new and of known devices.
    counts: DeviceCounts,
}

/// The result of a batch.
#[derive(Default)]
struct BatchOutcome {
    /// Numbers of new and of known devices.
    counts: DeviceCounts,
    refused: Vec<ImportProblem>,
    /// The error that prevented the rest from being written.
    broken: Option<StoreError>,
}

/// Checks a complete body and stores nothing, as a dry run does. Each block ends at the end of a line.
pub fn examine<'a>(
    format: Format,
    blocks: impl IntoIterator<Item = &'a [u8]>,
) -> ServiceResult<ImportReport> {
    let mut importer = Importer::new(format);
    let mut report = ImportReport { dry_run: true, ..ImportReport::default() };
    for block in blocks {
        report.take(&importer.parse(block)?);
    }
    importer.finish()?;
    Ok(report)
}

/// Parses blocks on blocking threads and collects batches.
async fn parse_blocks(
    mut importer: Importer,
    batch_lines: usize,
    mut blocks: mpsc::Receiver<Bytes>,
    batches: mpsc::Sender<Parsed>,
) -> ServiceResult<()> {
    let mut batch = Parsed::default();
    while let Some(block) = blocks.recv().await {
        // Parsing half a megabyte of JSON takes milliseconds, during which a runtime thread would serve no other task.
        let work = tokio::task::spawn_blocking(move || {
            let parsed = importer.parse(&block);
            (importer, parsed)
        });
        let (back, parsed) =
            work.await.map_err(|_| Problem::new(ErrorCode::Internal, "the parser failed"))?;
        importer = back;
        batch.append(parsed?);
        while let Some(full) = batch.cut(batch_lines) {
            if batches.send(full).await.is_err() {
                // The writer has failed, and its error is reported.
                return Ok(());
            }
        }
    }
    importer.finish()?;
    let _writer_may_have_failed = batches.send(batch).await;
    Ok(())
}

const fn belongs_to_a_line(error: &StoreError) -> bool {
    matches!(error, StoreError::Conflict(_) | StoreError::LimitReached(_))
}

fn interrupted(error: StoreError, report: &ImportReport) -> Problem {
    let done = report.created + report.updated;
    Problem::from(error)
        .with_hint(format!("{done} lines were registered before; importing all again is harmless"))
}

/// Adds the number of registered lines to the error that interrupted the body.
fn broken_off(problem: Problem, report: &ImportReport) -> Problem {
    match report.created + report.updated {
        0 => problem,
        done => {
            problem.with_hint(format!("{done} lines were registered before; importing all again is harmless"))
        }
    }
}

fn too_many_imports(spent: ShareExhausted) -> Problem {
    Problem::new(
        ErrorCode::RateLimited,
        format!("as many imports{} run as are allowed at once", spent.whose()),
    )
}
