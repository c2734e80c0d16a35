//! The client half of a subject with the real server: exchanges through one face, and their samples.

use super::asked_face::AskedFace;
use super::list_page::ListPage;
use super::own_data::OwnData;
use super::replay::{FaceCall, FieldValue, Replay};
use super::replaying_caller::ReplayingCaller;
use super::served::{ROOT_KEY, root};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use stentor_lab::subject::clock::monotonic_ns;
use stentor_lab::subject::protocol::{Arm, ExchangeSchedule, Report};
use stentor_lab::subject::reference::Digest;
use stentor_lab::subject::sample::{ClientSample, READ_WHILE_RECEIVED, SENT_WHILE_WRITTEN, inserted};
use stentor_lab::subject::store::PointStore;
use stentor_stage::text::cell;
use stentor_wire::Content;

/// A client with its connection.
pub(crate) struct FaceCaller {
    face: AskedFace,
    key: String,
    target: SocketAddr,
    own: OwnData,
    caller: ReplayingCaller,
    /// Cursor of the next page of a list; `None` at the beginning of the list.
    after: Option<String>,
    /// Exchanges of all runs, and those that are prepared at the server.
    made: u64,
    ready: u64,
    rows: Option<PointStore>,
}

/// Results of the exchanges of a run.
#[derive(Default)]
struct ExchangesMade {
    samples: Vec<u8>,
    /// Times at which rows were inserted, in nanoseconds of the laboratory's clock; empty if the cell keeps none.
    inserted: Vec<u8>,
    digest: Digest,
    errors: u64,
}

impl FaceCaller {
    /// Creates a key for the app with the data, connects, and opens the file of rows, if given.
    pub(crate) async fn connect(
        face: AskedFace,
        target: SocketAddr,
        own: OwnData,
        rows: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let key = if face.is_socket() { key_by_socket(target)? } else { key_by_rest(target).await? };
        let caller = ReplayingCaller::connect(&Replay::of(face.name, target, &key, &own.call(1, None)))?;
        let rows = rows.map(PointStore::open).transpose()?;
        Ok(Self { face, key, target, own, caller, after: None, made: 0, ready: 0, rows })
    }

    /// Prepares `count` further exchanges at the server, outside of their times: a group for each, if they need one.
    pub(crate) fn make_ready(&mut self, count: u64) -> anyhow::Result<()> {
        while self.ready < self.made + count {
            let Some(call) = self.own.making(&self.own.group(self.ready)) else { return Ok(()) };
            self.ask(&call)?;
            self.ready += 1;
        }
        Ok(())
    }

    /// Makes the exchanges of a run, one at a time.
    pub(crate) fn run(&mut self, arm: &Arm, t0_ns: i64) -> anyhow::Result<Report> {
        let mut made = ExchangesMade::default();
        let begin_ns = t0_ns.max(monotonic_ns());
        for seq in 0..arm.count {
            let t_intended = intended(arm.schedule, begin_ns, seq);
            wait_until(t_intended);
            let kept_ns = match self.exchange(seq, t_intended) {
                Ok((sample, answer)) => {
                    made.digest.add(&answer);
                    made.samples.extend(sample.to_bytes());
                    self.keep(seq, &answer)?
                }
                Err(error) => {
                    made.errors += 1;
                    // Standard error is a subject's log.
                    let _ = writeln!(std::io::stderr(), "exchange {seq}: {error:#}");
                    let failed = ClientSample { seq, t_intended, status: 1, ..ClientSample::default() };
                    made.samples.extend(failed.to_bytes());
                    0
                }
            };
            made.inserted.extend(self.rows.iter().flat_map(|_| kept_ns.to_le_bytes()));
        }
        std::fs::write(&arm.out, &made.samples)?;
        if self.rows.is_some() {
            std::fs::write(inserted(&arm.out), &made.inserted)?;
        }
        let n = arm.count - made.errors;
        Ok(Report::Done { n, errors: made.errors, digest: made.digest.hex() })
    }

    /// Sends the data of the exchange, if any, and requests page after page until the list is complete. Phases of several calls overlap:
    /// earlier pages were parsed before the last page was received, and earlier calls were answered before the last one was sent.
    fn exchange(&mut self, seq: u64, t_intended: i64) -> anyhow::Result<(ClientSample, Content)> {
        let mut sample = ClientSample { seq, t_intended, t_start: monotonic_ns(), ..ClientSample::default() };
        let (portion, group) = (self.own.portion(seq), self.own.group(self.made));
        self.made += 1;
        if portion.from == 0 {
            self.after = None;
        }
        let sending = self.own.sending(&group);
        let has_sent = !sending.is_empty();
        for call in sending {
            self.ask(&call)?;
        }
        let (mut answer, mut there, mut calls) = (self.own.nothing(), 0, 0);
        while there < portion.count {
            let call = self.own.call_in(&group, portion.count - there, self.after.as_deref());
            let request = Replay::of(self.face.name, self.target, &self.key, &call).request;
            if calls == 0 {
                sample.t_ser_end = monotonic_ns();
            }
            let reply = self.caller.call_with(request)?;
            sample.t_end = monotonic_ns();
            sample.bytes += u32::try_from(reply.len()).unwrap_or(u32::MAX);
            let page = ListPage::read(self.face.reader, self.own.list(), reply)?;
            if calls == 0 {
                sample.t_first_byte = self.caller.first_byte_ns().unwrap_or(sample.t_end);
            }
            calls += 1;
            self.after.clone_from(&page.next);
            let now = self.own.add(&mut answer, page)?;
            if now == there || (self.after.is_none() && now < portion.count) {
                bail!("the list ends after {now}");
            }
            there = now;
        }
        sample.flags = if calls > 1 { READ_WHILE_RECEIVED } else { 0 };
        sample.flags |= if has_sent { SENT_WHILE_WRITTEN } else { 0 };
        sample.t_deser_end = monotonic_ns();
        Ok((sample, answer))
    }

    fn ask(&mut self, call: &FaceCall) -> anyhow::Result<()> {
        let request = Replay::of(self.face.name, self.target, &self.key, call).request;
        self.caller.call_with(request)?;
        Ok(())
    }

    /// Inserts points as rows, if the cell keeps rows, and returns the time after that.
    fn keep(&mut self, seq: u64, answer: &Content) -> anyhow::Result<i64> {
        if let (Some(rows), Content::Points(points)) = (&mut self.rows, answer) {
            let portion = self.own.portion(seq);
            rows.keep(portion.from, points, portion.page, portion.is_last)?;
        }
        Ok(monotonic_ns())
    }
}

async fn key_by_rest(target: SocketAddr) -> anyhow::Result<String> {
    let root = root(target)?;
    let apps = root.get("/v1/apps").await?;
    let path = format!("/v1/apps/{}/keys", cell(&apps["apps"][0]["id"]));
    let key = root.post(&path, &json!({"name": "study", "scopes": ["admin"]})).await?;
    Ok(key["secret"].as_str().context("the server made no key")?.to_owned())
}

/// Creates a key over the raw socket, the only address that its client knows.
fn key_by_socket(target: SocketAddr) -> anyhow::Result<String> {
    let call = |operation, fields| FaceCall {
        operation,
        element: "",
        method: "",
        verb: "",
        path: String::new(),
        path_fields: 0,
        fields,
    };
    let replay = |call: &FaceCall| Replay::of("socket", target, ROOT_KEY, call);
    let apps = replay(&call("apps.list_apps", Vec::new()));
    let mut caller = ReplayingCaller::connect(&apps)?;
    let apps: Value = serde_json::from_slice(caller.call()?)?;
    let fields = vec![
        (1, "app", FieldValue::Text(cell(&apps["reply"]["apps"][0]["id"]))),
        (2, "name", FieldValue::Text("study".to_owned())),
        (3, "scopes", FieldValue::Texts(vec!["admin".to_owned()])),
    ];
    let key: Value =
        serde_json::from_slice(caller.call_with(replay(&call("apps.create_key", fields)).request)?)?;
    let secret = key["reply"]["secret"].as_str();
    Ok(secret.with_context(|| format!("the server made no key: {}", key["error"]["detail"]))?.to_owned())
}

/// Returns the intended start of an exchange: at even intervals, or now.
fn intended(schedule: ExchangeSchedule, begin_ns: i64, seq: u64) -> i64 {
    match schedule {
        ExchangeSchedule::Open { interval_ns, .. } => {
            begin_ns.saturating_add(interval_ns.saturating_mul(seq).cast_signed())
        }
        ExchangeSchedule::Closed { .. } => monotonic_ns(),
    }
}

fn wait_until(instant_ns: i64) {
    if let Ok(wait @ 1..) = u64::try_from(instant_ns - monotonic_ns()) {
        std::thread::sleep(Duration::from_nanos(wait));
    }
}
