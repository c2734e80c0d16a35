//! What is said to a half before it works.

use crate::subject::SubjectError;
use crate::subject::process::SubjectProcess;
use crate::subject::protocol::{Arm, CLOCK, ExchangeSchedule, Report, SubjectOrder, VERSION};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Asks a half who it is; returns the versions of its software.
pub(super) async fn hello(host: &mut SubjectProcess) -> Result<BTreeMap<String, String>, SubjectError> {
    match host.ask(&SubjectOrder::Hello).await? {
        Report::Hello { lsp: VERSION, versions, clock } if clock == CLOCK => Ok(versions),
        Report::Hello { lsp, clock, .. } => {
            Err(SubjectError::Wrong(format!("it speaks version {lsp} with the clock {clock:?}")))
        }
        other => Err(SubjectError::Babble { line: other.name().into(), wanted: "hello" }),
    }
}

/// Returns a half what to do once it is told to go.
pub(super) async fn arm(
    host: &mut SubjectProcess,
    schedule: ExchangeSchedule,
    count: u64,
    out: PathBuf,
) -> Result<(), SubjectError> {
    let out = crate::subject::process::absolute(&out)?;
    match host.ask(&SubjectOrder::Arm(Arm { schedule, count, out })).await? {
        Report::Armed => Ok(()),
        other => Err(SubjectError::Babble { line: other.name().into(), wanted: "armed" }),
    }
}
