//! `stentor store copy`: copies a store from one engine into another.

use crate::failure::CommandFailure;
use crate::output::{Output, table, thousands};
use crate::progress::PhaseProgress;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::time::Instant;
use stentor_node::{CopyStep, StoreCopy, StorePlace, UnkeepableRows, copy_store};

/// Copy a whole store into another engine, and compare both
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor store copy sqlite:/var/lib/stentor/stentor.db 'postgres://stentor@db.example/stentor?sslmode=verify-full&password_file=/run/secrets/db'
  stentor store copy postgres://stentor@db.example/stentor sqlite:/var/lib/other/stentor.db --json

Stop the server first: no other process may use either side during the copy. The target is an empty database, or a file that does not
exist. Run the command again to continue an interrupted copy; no server uses the target before the copy is finished. At the end the
command counts the rows of every table and compares their checksums on both sides.

The copy contains the store alone. The data directory with key.pepper and seal.key stays where it is, and so does the queue, which the
server refills at the next start. Then change store.engine and store.url (docs/operations.md).

Exits 0 when both sides are equal.")]
pub(super) struct CopyArgs {
    /// The source store: sqlite:PATH of its file, or postgres://…
    #[arg(value_name = "FROM")]
    from: String,
    /// The target store, in the same form
    #[arg(value_name = "TO")]
    to: String,
    /// Leave out and list rows that the target cannot store because a text contains U+0000; otherwise the copy fails at the first one
    #[arg(long = "set-aside")]
    leave_out: bool,
}

impl CopyArgs {
    /// Copies the store.
    pub(super) async fn run(self, output: Output) -> anyhow::Result<()> {
        let place =
            |text: &str| text.parse::<StorePlace>().map_err(|error| CommandFailure::usage(error.to_string()));
        let (from, to) = (place(&self.from)?, place(&self.to)?);
        let begun = Instant::now();
        let unkeepable = if self.leave_out { UnkeepableRows::LeaveOut } else { UnkeepableRows::Refuse };
        // A separate thread: the driver of PostgreSQL blocks in a way that the threads of a runtime refuse.
        let (done, copied) = tokio::sync::oneshot::channel();
        let work = move || {
            let mut progress = CopyProgress::default();
            let copied = copy_store(&from, &to, unkeepable, |step| progress.show(step));
            progress.finish();
            let _ = done.send(copied);
        };
        std::thread::Builder::new().name("stentor-copy".to_owned()).spawn(work)?;
        let copied = copied.await.context("the copy broke off")?;
        let copied = copied.map_err(|error| CommandFailure::not_done(error.to_string()))?;
        let seconds = begun.elapsed().as_secs_f64();
        output.result(&object(&copied, seconds), || describe(&copied, seconds))
    }
}

/// The progress of a copy: one bar while rows are written, another while both sides are summed up.
#[derive(Default)]
struct CopyProgress {
    bar: Option<(&'static str, PhaseProgress, u64)>,
}

impl CopyProgress {
    fn show(&mut self, step: CopyStep) {
        let (name, rows, of) = match step {
            CopyStep::Copied { rows, of } => ("rows", rows, of),
            CopyStep::Verified { rows, of } => ("compared", rows, of),
        };
        if self.bar.as_ref().is_none_or(|(shown, ..)| *shown != name) {
            self.finish();
            self.bar = Some((name, PhaseProgress::start(name, of), 0));
        }
        if let Some((_, bar, last)) = &mut self.bar {
            bar.update(rows);
            *last = rows;
        }
    }

    fn finish(&mut self) {
        if let Some((_, bar, last)) = self.bar.take() {
            bar.finish(last);
        }
    }
}

fn rows(copied: &StoreCopy) -> u64 {
    copied.tables.iter().map(|(_, sum)| sum.rows).sum()
}

fn object(copied: &StoreCopy, seconds: f64) -> Value {
    let tables = copied.tables.iter().map(
        |(name, sum)| json!({"table": name, "rows": sum.rows, "checksum": format!("{:016x}", sum.checksum)}),
    );
    let left_out = copied.left_out.iter().map(|row| json!({"table": row.table, "key": row.key}));
    json!({
        "same": true,
        "resumed": copied.resumed,
        "rows": rows(copied),
        "seconds": seconds,
        "set_aside_count": copied.left_out_count,
        "set_aside": left_out.collect::<Vec<_>>(),
        "tables": tables.collect::<Vec<_>>(),
    })
}

fn describe(copied: &StoreCopy, seconds: f64) -> String {
    let some = copied.tables.iter().filter(|(_, sum)| sum.rows > 0);
    let list =
        some.map(|(name, sum)| [(*name).to_owned(), thousands(sum.rows), format!("{:016x}", sum.checksum)]);
    let list = table(["table", "rows", "checksum"], list);
    let mut text =
        format!("{} rows are the same on both sides, after {seconds:.1} s\n{list}", thousands(rows(copied)));
    for row in &copied.left_out {
        text.push_str(&format!("\nleft out: {} {}", row.table, row.key));
    }
    match copied.left_out_count - copied.left_out.len() as u64 {
        0 => text,
        more => format!("{text}\nleft out: {more} more"),
    }
}
