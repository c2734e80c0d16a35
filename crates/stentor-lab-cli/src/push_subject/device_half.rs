//! The device: it registers like the service's clients, sends a message up, and waits for the one that comes back down.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use stentor_gateway::client::{McsClient, McsClientEvent, McsClientLogin, McsUpstream};
use stentor_lab::subject::clock::monotonic_ns;
use stentor_lab::subject::protocol::{Arm, ExchangeSchedule, Prepare, Report};
use stentor_lab::subject::reference::Digest;
use stentor_lab::subject::sample::{ClientSample, READ_WHILE_RECEIVED, SENT_WHILE_WRITTEN};
use stentor_lab::subject::setup::{Stream, SubjectSetup};
use stentor_wire::Content;
use stentor_wire::mcs::{McsCheckinReply, McsData};

use super::gateway_api::{API_PORT, APP, GatewayCaller, HeaderField, JOIN_KEY, MCS_PORT, fact, port_at};
use crate::features::PushServiceFront;
use stentor_stage::text::cell;

/// The program on the device.
const PROGRAM: &str = "org.example.study";
/// Keys of a message's data: the payload, under the paper's name for it, and the id of the message.
const PAYLOAD: &str = "PAYLOAD";
const ID: &str = "ID";
/// Key of the id of the acknowledged message in the published code of GCM.
const ACKNOWLEDGED: &str = "ack_msgid";
/// Letters at the start of the payload that are the id of the message in the published code of FCM.
const ID_INSIDE_BYTES: usize = 20;
/// Time for which a message may wait for the app server.
const TTL: Duration = Duration::from_secs(600);

/// The device, once it is connected.
pub(super) struct DeviceHalf {
    client: McsClient<Stream>,
    prepare: Prepare,
    app: String,
    arm: Option<Arm>,
    /// Messages so far; the id of each is made from this count.
    sent: u64,
    /// True if the payload begins with the id, as in the published code of FCM.
    has_id_inside: bool,
}

/// A message that is on its way.
struct DeviceFlight {
    seq: u64,
    request: Content,
    text: String,
    sample: ClientSample,
}

/// The exchanges of a run, under way and done.
#[derive(Default)]
struct PushFlights {
    flights: BTreeMap<String, DeviceFlight>,
    done: BTreeMap<u64, (ClientSample, Option<Content>)>,
}

impl DeviceHalf {
    /// Registers and connects.
    pub(super) async fn start(service: PushServiceFront, prepare: Prepare) -> anyhow::Result<Self> {
        let factors = &prepare.factors;
        let address = prepare.target.context("a device needs a gateway")?.ip();
        let api = GatewayCaller::at(port_at(factors, API_PORT, address)?, factors)?;
        let app = fact(factors, APP)?.to_owned();
        let login = register(service, &api, &app, fact(factors, JOIN_KEY)?).await?;
        let setup = SubjectSetup::of(factors, prepare.seed)?;
        let stream = setup.connect(port_at(factors, MCS_PORT, address)?).await?;
        let client = McsClient::log_in(stream, login).await?;
        let has_id_inside = factors.get("id").is_some_and(|place| place == "inside");
        Ok(Self { client, prepare, app, arm: None, sent: 0, has_id_inside })
    }

    /// Keeps the order for the next run.
    pub(super) fn arm(&mut self, arm: Arm) {
        self.arm = Some(arm);
    }

    /// Makes the exchanges.
    pub(super) async fn go(&mut self, t0_ns: i64) -> anyhow::Result<Report> {
        let arm = self.arm.take().context("the order go came before arm")?;
        let run = self.run(&arm, t0_ns.max(monotonic_ns())).await?;
        let bytes: Vec<u8> = run.done.values().flat_map(|(sample, _)| sample.to_bytes()).collect();
        std::fs::write(&arm.out, bytes)?;
        let mut digest = Digest::default();
        let answers = run.done.values().filter_map(|(_, answer)| answer.as_ref());
        let n = answers.inspect(|answer| digest.add(answer)).count() as u64;
        Ok(Report::Done { n, errors: arm.count - n, digest: digest.hex() })
    }

    async fn run(&mut self, arm: &Arm, begin_ns: i64) -> anyhow::Result<PushFlights> {
        let (mut run, mut next) = (PushFlights::default(), 0);
        while (run.done.len() as u64) < arm.count {
            let is_free = next < arm.count && run.flights.len() < places(arm.schedule);
            let t_intended = intended(arm.schedule, begin_ns, next);
            tokio::select! {
                event = self.client.next() => self.hear(event?, &mut run)?,
                () = until(t_intended), if is_free => {
                    self.send(next, t_intended, &mut run).await?;
                    next += 1;
                }
            }
        }
        Ok(run)
    }

    async fn send(&mut self, seq: u64, t_intended: i64, run: &mut PushFlights) -> anyhow::Result<()> {
        let Prepare { op, factors, seed, .. } = &self.prepare;
        let request = op.request_number(factors, *seed, seq);
        let Content::Payload(text) = &request else { bail!("only a payload can be sent up") };
        self.sent += 1;
        let (id, text) = self.named(text);
        let t_start = monotonic_ns();
        let message = McsUpstream {
            id: id.clone(),
            to: self.app.clone(),
            category: PROGRAM.to_owned(),
            data: self.data(&id, &text),
            ttl: TTL,
        };
        let t_ser_end = monotonic_ns();
        // Acknowledges all earlier downstream messages.
        self.client.confirm_with_next();
        self.client.send(message).await?;
        let flags = SENT_WHILE_WRITTEN | READ_WHILE_RECEIVED;
        let sample = ClientSample { seq, t_intended, t_start, t_ser_end, flags, ..ClientSample::default() };
        run.flights.insert(id, DeviceFlight { seq, request, text, sample });
        Ok(())
    }

    /// Returns the id of the next message, and its payload.
    fn named(&self, text: &str) -> (String, String) {
        if !self.has_id_inside {
            return (format!("{:08}", self.sent), text.to_owned());
        }
        let id = format!("{:0width$}", self.sent, width = ID_INSIDE_BYTES);
        let text = format!("{id}{}", text.get(ID_INSIDE_BYTES..).unwrap_or_default());
        (id, text)
    }

    fn data(&self, id: &str, text: &str) -> Vec<(String, String)> {
        let payload = (PAYLOAD.to_owned(), text.to_owned());
        if self.has_id_inside { vec![payload] } else { vec![(ID.to_owned(), id.to_owned()), payload] }
    }

    fn hear(&self, event: McsClientEvent, run: &mut PushFlights) -> anyhow::Result<()> {
        match event {
            McsClientEvent::Message(data) => {
                let t_end = monotonic_ns();
                let inside = || value(&data, PAYLOAD)?.get(..ID_INSIDE_BYTES);
                let id = value(&data, ID).or_else(|| value(&data, ACKNOWLEDGED)).or_else(inside);
                if let Some(flight) = run.flights.remove(id.unwrap_or_default()) {
                    let answer = self.answer(&flight, &data)?;
                    run.land(flight, t_end, &data, answer);
                }
            }
            McsClientEvent::Refused { id, .. } => {
                if let Some(flight) = run.flights.remove(&id) {
                    let sample = ClientSample { status: 1, ..flight.sample };
                    run.done.insert(flight.seq, (sample, None));
                }
            }
            McsClientEvent::Kept(_) | McsClientEvent::Alive => {}
            McsClientEvent::Deleted(count) => bail!("{count} messages were deleted"),
        }
        Ok(())
    }

    /// Reads the message that came back. A mere acknowledgement stands for the length of the payload, which the device knows.
    fn answer(&self, flight: &DeviceFlight, data: &McsData) -> anyhow::Result<Content> {
        match value(data, PAYLOAD) {
            Some(text) if text == flight.text => Ok(flight.request.clone()),
            Some(text) => Ok(Content::Payload(text.to_owned())),
            None => {
                let Prepare { op, factors, seed, .. } = &self.prepare;
                op.answer_to(factors, *seed, flight.request.clone()).context("the cell makes no sense")
            }
        }
    }
}

impl PushFlights {
    fn land(&mut self, flight: DeviceFlight, t_end: i64, data: &McsData, answer: Content) {
        let bytes: usize = data.app_data.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
        let sample = ClientSample {
            t_first_byte: t_end,
            t_end,
            t_deser_end: monotonic_ns(),
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            ..flight.sample
        };
        self.done.insert(flight.seq, (sample, Some(answer)));
    }
}

fn value<'a>(data: &'a McsData, key: &str) -> Option<&'a str> {
    data.app_data.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
}

/// Checks in and registers: with GCM for a sender that anybody may register for, with FCM as an installation of the app.
async fn register(
    service: PushServiceFront,
    api: &GatewayCaller,
    app: &str,
    key: &str,
) -> anyhow::Result<McsClientLogin> {
    let nobody = HeaderField { name: "accept", value: "*/*" };
    let reply = api.ask(Method::POST, "/checkin", nobody, "application/x-protobuf", Vec::new()).await?;
    let reply = McsCheckinReply::read(&reply)?;
    let (android_id, security_token) =
        reply.android_id.zip(reply.security_token).context("the check-in gives nothing to log in with")?;
    let mut form = format!("app={PROGRAM}&sender={app}&device={android_id}");
    if service == PushServiceFront::Fcm {
        form += &format!("&X-Goog-Firebase-Installations-Auth={}", install(api, app, key).await?);
    }
    let login = format!("AidLogin {android_id}:{security_token}");
    let login = HeaderField { name: "authorization", value: &login };
    let kind = "application/x-www-form-urlencoded";
    let response = api.ask(Method::POST, "/c2dm/register3", login, kind, form).await?;
    let response = String::from_utf8_lossy(&response).into_owned();
    ensure!(response.starts_with("token="), "the registration was answered with {response}");
    let security_token = security_token.to_string().into();
    Ok(McsClientLogin { android_id, security_token, received: Vec::new(), heartbeat: None })
}

async fn install(api: &GatewayCaller, app: &str, key: &str) -> anyhow::Result<String> {
    let path = format!("/v1/projects/{app}/installations");
    let key = HeaderField { name: "x-goog-api-key", value: key };
    let made: Value = api.json(Method::POST, &path, key, &json!({"fid": ""})).await?;
    Ok(cell(&made["authToken"]["token"]))
}

const fn places(schedule: ExchangeSchedule) -> usize {
    match schedule {
        ExchangeSchedule::Closed { .. } => 1,
        ExchangeSchedule::Open { max_in_flight, .. } => max_in_flight as usize,
    }
}

/// Returns when an exchange should start; one that follows another starts at once.
fn intended(schedule: ExchangeSchedule, begin_ns: i64, seq: u64) -> i64 {
    match schedule {
        ExchangeSchedule::Closed { .. } => monotonic_ns(),
        ExchangeSchedule::Open { interval_ns, .. } => {
            begin_ns.saturating_add(interval_ns.saturating_mul(seq).cast_signed())
        }
    }
}

async fn until(instant_ns: i64) {
    if let Ok(wait @ 1..) = u64::try_from(instant_ns - monotonic_ns()) {
        tokio::time::sleep(Duration::from_nanos(wait)).await;
    }
}
