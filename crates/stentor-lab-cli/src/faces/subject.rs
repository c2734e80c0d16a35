//! The real server as a subject of a study, by LSP-1: the server half runs the server itself in its process, with data of its own, and the
//! client half calls it through one face.

use super::asked_face::AskedFace;
use super::face_caller::FaceCaller;
use super::own_data::OwnData;
use super::served::{anywhere, root, serve, serve_socket};
use crate::orders::{self, OrderedHalf};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;
use stentor_lab::subject::protocol::{Arm, Prepare, Report, SubjectOrder, SubjectRole};
use tempfile::TempDir;

/// Plays a half of a dialect until the order `Stop` or the end of standard input.
pub(crate) async fn speak(dialect: &str) -> anyhow::Result<()> {
    orders::take(&mut FaceSubject { dialect, half: FaceHalf::None }).await
}

struct FaceSubject<'a> {
    dialect: &'a str,
    half: FaceHalf,
}

impl OrderedHalf for FaceSubject<'_> {
    async fn follow(&mut self, order: SubjectOrder) -> anyhow::Result<Option<Report>> {
        self.half.follow(self.dialect, order).await
    }
}

enum FaceHalf {
    None,
    // Held, because the directory is deleted when it is dropped.
    Server { _directory: TempDir, out: Option<PathBuf> },
    Client { caller: Box<FaceCaller>, arm: Option<Arm> },
}

impl FaceHalf {
    /// Follows an order.
    async fn follow(&mut self, dialect: &str, order: SubjectOrder) -> anyhow::Result<Option<Report>> {
        match order {
            SubjectOrder::Hello => bail!("said already"),
            SubjectOrder::Prepare(prepare) => self.prepare(dialect, prepare).await.map(Some),
            SubjectOrder::Arm(arm) => self.arm(arm).map(Some),
            SubjectOrder::Go { t0_ns } => self.go(t0_ns),
            SubjectOrder::Stop => self.stop().map(Some),
        }
    }

    async fn prepare(&mut self, dialect: &str, prepare: Prepare) -> anyhow::Result<Report> {
        let own = OwnData::of(prepare.op, &prepare.factors, prepare.seed)?;
        let face = AskedFace::named(dialect)
            .with_context(|| format!("no face of the server is called in {dialect}"))?;
        if prepare.role == SubjectRole::Client {
            let target = prepare.target.context("a client needs a target")?;
            let rows = prepare.factors.get("insert").map(PathBuf::from);
            let caller = Box::new(FaceCaller::connect(face, target, own, rows.as_deref()).await?);
            *self = Self::Client { caller, arm: None };
            return Ok(Report::Ready { port: 0, facts: BTreeMap::new() });
        }
        let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
        let bind = prepare.bind.unwrap_or_else(anywhere);
        let (api, subject_address) = if face.is_socket() {
            let server = serve_socket(directory.path(), bind).await?;
            (server.api, server.socket.context("the server has no raw socket")?)
        } else {
            let api = serve(directory.path(), bind).await?;
            (api, api)
        };
        own.put(root(api)?).await?;
        *self = Self::Server { _directory: directory, out: None };
        Ok(Report::Ready { port: subject_address.port(), facts: BTreeMap::new() })
    }

    fn arm(&mut self, order: Arm) -> anyhow::Result<Report> {
        match self {
            Self::None => bail!("armed before it was prepared"),
            Self::Server { out, .. } => *out = Some(order.out),
            Self::Client { caller, arm } => {
                caller.make_ready(order.count)?;
                *arm = Some(order);
            }
        }
        Ok(Report::Armed)
    }

    fn go(&mut self, t0_ns: i64) -> anyhow::Result<Option<Report>> {
        match self {
            Self::Server { .. } => Ok(None),
            Self::Client { caller, arm: Some(arm) } => caller.run(arm, t0_ns).map(Some),
            _ => bail!("the order go came before arm"),
        }
    }

    /// Writes no times of phases for a server: its work for a call is not interrupted to read a clock.
    fn stop(&mut self) -> anyhow::Result<Report> {
        if let Self::Server { out: Some(out), .. } = self {
            std::fs::write(out, [])?;
        }
        Ok(Report::Done { n: 0, errors: 0, digest: String::new() })
    }
}
