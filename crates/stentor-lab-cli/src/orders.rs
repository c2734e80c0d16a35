//! The subject's side of LSP-1 for halves that are played here: orders in, reports out.

use std::future::Future;

use stentor_lab::subject::protocol::{CLOCK, Report, SubjectOrder, VERSION};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// A half that follows orders.
pub(crate) trait OrderedHalf {
    /// Follows an order; not every order is reported on.
    fn follow(&mut self, order: SubjectOrder) -> impl Future<Output = anyhow::Result<Option<Report>>>;
}

/// Follows the orders on standard input until `Stop` or the end of input, and writes reports to standard output.
pub(crate) async fn take(half: &mut impl OrderedHalf) -> anyhow::Result<()> {
    let mut order_lines = BufReader::new(tokio::io::stdin()).lines();
    let mut reports = tokio::io::stdout();
    while let Some(line) = order_lines.next_line().await? {
        let order: SubjectOrder = serde_json::from_str(&line)?;
        let is_last = order == SubjectOrder::Stop;
        let followed = match order {
            SubjectOrder::Hello => Ok(Some(hello())),
            order => half.follow(order).await,
        };
        let report = followed.unwrap_or_else(|error| Some(Report::Error { text: format!("{error:#}") }));
        if let Some(report) = report {
            reports.write_all(format!("{}\n", serde_json::to_string(&report)?).as_bytes()).await?;
            reports.flush().await?;
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

fn hello() -> Report {
    let versions = [("stentor".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into();
    Report::Hello { lsp: VERSION, versions, clock: CLOCK.into() }
}
