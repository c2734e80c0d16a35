//! One push service: its connections, its pace, and the headers with which the app identifies itself there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::future::Shared;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use reqwest::Url;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::{Cut, ProviderTrouble, ServiceStanding};
use stentor_core::time::Timestamp;
use stentor_http2::{Client, Endpoint, Excerpt, Fault, Keep, Replies, Reply, RequestBatch, Response};

use super::credential::WebPushCredential;
use super::errors::{self, Answer};
use super::http1::{Http1, header_map};
use super::pace::{HostAnswers, Pace};
use super::progress::Progress;
use super::requests::WebPushBatch;
use super::vapid::{VapidHeader, VapidKeyPair};
use crate::subset::Subset;
use crate::{Setup, replies, trouble};

const KEEP: Keep = Keep::Excerpts(Excerpt { headers: replies::HEADERS, body: errors::excerpt });

/// The moment after which no outcome is awaited.
pub(super) type SharedCut<'a> = Shared<Cut<'a>>;

/// The parts of the adapter that all push services use.
pub(super) struct Sender {
    pub(super) credential: WebPushCredential,
    pub(super) http1: Http1,
    pub(super) clock: Arc<dyn Clock>,
}

/// One push service.
pub(super) struct Host {
    origin: Url,
    /// The origin without a slash at its end, as the audience of tokens.
    audience: String,
    /// `None` without TLS, where HTTP/1.1 is spoken.
    client: Option<Client>,
    is_http1: AtomicBool,
    pace: Mutex<Pace>,
    headers: Mutex<(VapidHeader, VapidHeader)>,
}

impl Host {
    /// Prepares for an origin; connects to nothing. `None` if it is no origin.
    pub(super) fn open(origin: &str, sender: &Sender, setup: &Setup) -> Option<Self> {
        let url = Url::parse(origin).ok()?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
        let client = if url.scheme() == "https" {
            let mut endpoint = Endpoint::new(host, url.port_or_known_default()?);
            endpoint.roots = sender.credential.roots.clone();
            endpoint.addresses = Arc::new(setup.outbound.clone());
            Some(Client::new(&endpoint, setup.limits.clone()).ok()?)
        } else {
            None
        };
        Some(Self {
            origin: url,
            audience: origin.to_owned(),
            is_http1: AtomicBool::new(client.is_none()),
            client,
            pace: Mutex::default(),
            headers: Mutex::default(),
        })
    }

    /// Returns the connections, if it speaks HTTP/2.
    pub(super) const fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// Returns the obstacle to reaching it.
    pub(super) fn trouble(&self) -> Option<ProviderTrouble> {
        let fault = self.client.as_ref()?.trouble().filter(|_| !self.is_http1.load(Relaxed))?;
        Some(trouble::of_fault(&trouble::place_of(&self.origin), &fault))
    }

    /// Returns its standing, if it has a limit or rests.
    pub(super) fn standing(&self, now: Timestamp) -> Option<ServiceStanding> {
        let pace = self.pace.lock();
        let (per_minute, resting) = (pace.per_minute(), pace.resting(now).map(|(reason, _)| reason));
        let standing =
            ServiceStanding { origin: self.audience.clone(), per_minute, resting, backlog: pace.backlog(now) };
        (per_minute.is_some() || resting.is_some()).then_some(standing)
    }

    /// Sends the requests at these places, as many as its pace allows; the others are deferred.
    pub(super) async fn send(
        &self,
        sender: &Sender,
        batch: &WebPushBatch,
        places: Vec<usize>,
        progress: &Progress,
        cut: SharedCut<'_>,
    ) {
        let grant = self.pace.lock().grant(places.len(), sender.clock.now());
        let (now, later) = places.split_at(grant.allowed);
        progress.put(later.iter().enumerate().map(|(at, place)| (*place, grant.deferred(at))));
        if now.is_empty() {
            return;
        }
        let has_previous = sender.credential.previous.is_some();
        let mut judged = vec![false; now.len()];
        let some = |part: Vec<Option<Answer>>| {
            // A refused request is sent again if there is another key.
            let known = part.into_iter().enumerate().filter_map(|(at, answer)| Some((at, answer?)));
            let known: Vec<_> = known.filter(|(_, answer)| !(has_previous && *answer == Answer::Refused)).collect();
            known.iter().for_each(|(at, _)| judged[*at] = true);
            self.judge(known.into_iter().map(|(at, answer)| (now[at], answer)).collect(), sender, progress);
        };
        let mut answers = self.answers(sender, &sender.credential.key, batch, now, cut.clone(), some).await;
        if let Some(previous) = &sender.credential.previous {
            let refused: Vec<usize> = (0..now.len()).filter(|at| answers[*at] == Answer::Refused).collect();
            let places: Vec<usize> = refused.iter().map(|at| now[*at]).collect();
            // The push service has processed none of them.
            if !places.is_empty() {
                let again = self.answers(sender, previous, batch, &places, cut, drop).await;
                refused.into_iter().zip(again).for_each(|(at, answer)| answers[at] = answer);
            }
        }
        let late = (0..now.len()).filter(|at| !judged[*at]).map(|at| (now[at], answers[at]));
        self.judge(late.collect(), sender, progress);
    }

    /// Learns from the answers to the requests at some places, and records their outcomes.
    fn judge(&self, answers: Vec<(usize, Answer)>, sender: &Sender, progress: &Progress) {
        let verdict = self.pace.lock().note(&counted(&answers), sender.clock.now());
        if let Some(client) = self.client.as_ref().filter(|_| verdict.concerns_all) {
            client.slow_down();
        }
        progress.put(answers.into_iter().map(|(place, answer)| (place, errors::outcome(answer, &verdict))));
    }

    /// Sends requests signed with a key, and returns their answers. Passes those to `some` that came while others are late.
    async fn answers(
        &self,
        sender: &Sender,
        key: &VapidKeyPair,
        batch: &WebPushBatch,
        places: &[usize],
        cut: SharedCut<'_>,
        some: impl FnOnce(Vec<Option<Answer>>) + Send,
    ) -> Vec<Answer> {
        let Some(headers) = self.headers(sender, key, batch) else { return vec![Answer::Unanswered; places.len()] };
        let (now, requests) = (sender.clock.now(), &batch.requests);
        let over_http1 = |places: Vec<usize>| {
            let (headers, cut) = (header_map(&headers), cut.clone());
            async move { sender.http1.send(&self.origin, headers, requests, &places, now, cut).await }
        };
        let Some(client) = self.client.as_ref().filter(|_| !self.is_http1.load(Relaxed)) else {
            return over_http1(places.to_vec()).await;
        };
        let subset = Subset { of: requests.clone(), places: places.to_vec() };
        let call = RequestBatch {
            constant: headers.clone(),
            path: None,
            requests: Arc::new(subset),
            start_within: batch.start_within,
            keep: KEEP,
            repeated: batch.repeated,
        };
        let sending = client.start(call);
        if let Some(part) = sending.most(cut.clone()).await {
            let (answers, older) = read(part.replies, sender.clock.now());
            let mut known: Vec<_> = answers.into_iter().map(Some).collect();
            part.missing.into_iter().chain(older).for_each(|at| known[at] = None);
            some(known);
        }
        let replies = sending.all(cut.clone()).await;
        let (mut answers, older) = read(replies, sender.clock.now());
        if !older.is_empty() {
            self.is_http1.store(true, Relaxed);
            let again = over_http1(older.iter().map(|at| places[*at]).collect()).await;
            older.into_iter().zip(again).for_each(|(at, answer)| answers[at] = answer);
        }
        answers
    }

    /// Returns the headers of every request; `None` if the token cannot be signed.
    fn headers(
        &self,
        sender: &Sender,
        key: &VapidKeyPair,
        batch: &WebPushBatch,
    ) -> Option<Vec<(HeaderName, HeaderValue)>> {
        let credential = &sender.credential;
        let mut held = self.headers.lock();
        let held = if std::ptr::eq(key, &raw const credential.key) { &mut held.0 } else { &mut held.1 };
        let header = held.get(key, &self.audience, &credential.subject, sender.clock.now())?;
        let mut headers = batch.headers.clone();
        headers.push((AUTHORIZATION, header));
        Some(headers)
    }
}

/// Reads replies. Returns the answers, and the places whose connection speaks HTTP/1.1 only.
fn read(replies: Replies, now: Timestamp) -> (Vec<Answer>, Vec<usize>) {
    let mut answers = vec![Answer::Accepted; replies.len()];
    let mut older = Vec::new();
    for (at, reply) in replies.into_others() {
        answers[at] = match reply {
            Reply::Answered(response) => of_response(&response, now),
            Reply::NotSent(Fault::Alpn) => {
                older.push(at);
                Answer::Unreached
            }
            Reply::NotSent(Fault::AddressRefused(_)) => Answer::AddressRefused,
            Reply::NotSent(Fault::Request(_)) => Answer::Unsealed,
            Reply::NotSent(_) => Answer::Unreached,
            Reply::Unanswered(_) => Answer::Unanswered,
        };
    }
    (answers, older)
}

fn of_response(response: &Response, now: Timestamp) -> Answer {
    errors::answer(response.status, response.body(), replies::wait(response, now))
}

fn counted(answers: &[(usize, Answer)]) -> HostAnswers {
    let mut counts = HostAnswers::default();
    for (_, answer) in answers {
        let waits = match answer {
            Answer::Throttled(wait) | Answer::Unavailable(wait) => *wait,
            _ => None,
        };
        counts.retry_after = counts.retry_after.max(waits);
        let count = match answer {
            Answer::Throttled(_) => &mut counts.throttled,
            Answer::Refused => &mut counts.refused,
            Answer::Unavailable(_) | Answer::Undefined | Answer::Unanswered => &mut counts.down,
            Answer::Unreached => &mut counts.unreached,
            // Of these the push service has said nothing.
            Answer::Unsealed | Answer::AddressRefused => continue,
            _ => &mut counts.fine,
        };
        *count += 1;
        counts.accepted += u32::from(*answer == Answer::Accepted);
    }
    counts
}
