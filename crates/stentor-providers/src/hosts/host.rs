//! One host: its connections and its pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::future::Shared;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use reqwest::Url;
use stentor_core::ports::provider::{Cut, ProviderTrouble, ServiceStanding};
use stentor_core::time::Timestamp;
use stentor_http2::{Client, Endpoint, Fault, Replies, Reply, RequestBatch, Roots};

use super::answer::{self, Answer};
use super::http1::{Http1Call, header_map};
use super::pace::{HostAnswers, Pace};
use super::progress::Progress;
use super::{HostBatch, HostDialect, HostResponse, HostSender};
use crate::subset::Subset;
use crate::{Setup, replies, trouble};

/// The moment after which no outcome is awaited.
pub(super) type SharedCut<'a> = Shared<Cut<'a>>;

/// One push service that devices name.
pub(super) struct Host {
    origin: Url,
    /// The same as a text without a slash at its end.
    name: String,
    /// `None` without TLS, where HTTP/1.1 is spoken.
    client: Option<Client>,
    is_http1: AtomicBool,
    pace: Mutex<Pace>,
}

impl Host {
    /// Prepares for an origin; connects to nothing. `None` if it is no origin.
    pub(super) fn open(origin: &str, roots: &Roots, setup: &Setup) -> Option<Self> {
        let url = Url::parse(origin).ok()?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
        let client = if url.scheme() == "https" {
            let mut endpoint = Endpoint::new(host, url.port_or_known_default()?);
            endpoint.roots = roots.clone();
            endpoint.addresses = Arc::new(setup.outbound.clone());
            Some(Client::new(&endpoint, setup.limits.clone()).ok()?)
        } else {
            None
        };
        Some(Self {
            origin: url,
            name: origin.to_owned(),
            is_http1: AtomicBool::new(client.is_none()),
            client,
            pace: Mutex::default(),
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
            ServiceStanding { origin: self.name.clone(), per_minute, resting, backlog: pace.backlog(now) };
        (per_minute.is_some() || resting.is_some()).then_some(standing)
    }

    /// Sends the requests at these places, as many as its pace allows; the others are deferred.
    pub(super) async fn send<D: HostDialect>(
        &self,
        sender: &HostSender<D>,
        batch: &HostBatch,
        places: &[usize],
        progress: &Progress,
        cut: SharedCut<'_>,
    ) {
        let grant = self.pace.lock().grant(places.len(), sender.clock.now());
        let (now, later) = places.split_at(grant.allowed);
        progress.put(later.iter().enumerate().map(|(at, place)| (*place, grant.deferred(at))));
        if now.is_empty() {
            return;
        }
        let first = match sender.dialect.authorization(&self.name, None).await {
            Ok(header) => header,
            Err(answer) => {
                return self.judge(now.iter().map(|place| (*place, answer)).collect(), sender, progress);
            }
        };
        let may_repeat = sender.dialect.has_other_header();
        let mut judged = vec![false; now.len()];
        let some = |part: Vec<Option<Answer>>| {
            // A refused request is sent again if there is another header.
            let known = part.into_iter().enumerate().filter_map(|(at, answer)| Some((at, answer?)));
            let known: Vec<_> =
                known.filter(|(_, answer)| !(may_repeat && *answer == Answer::Refused)).collect();
            known.iter().for_each(|(at, _)| judged[*at] = true);
            self.judge(known.into_iter().map(|(at, answer)| (now[at], answer)).collect(), sender, progress);
        };
        let mut answers = self.answers(sender, first.as_ref(), batch, now, cut.clone(), some).await;
        let refused: Vec<usize> = (0..now.len()).filter(|at| answers[*at] == Answer::Refused).collect();
        // The push service has processed none of them.
        if !refused.is_empty()
            && let Ok(Some(other)) = sender.dialect.authorization(&self.name, first.as_ref()).await
        {
            let places: Vec<usize> = refused.iter().map(|at| now[*at]).collect();
            let again = self.answers(sender, Some(&other), batch, &places, cut, drop).await;
            refused.into_iter().zip(again).for_each(|(at, answer)| answers[at] = answer);
        }
        let late = (0..now.len()).filter(|at| !judged[*at]).map(|at| (now[at], answers[at]));
        self.judge(late.collect(), sender, progress);
    }

    /// Learns from the answers to the requests at some places, and records their outcomes.
    fn judge<D>(&self, answers: Vec<(usize, Answer)>, sender: &HostSender<D>, progress: &Progress) {
        let verdict = self.pace.lock().note(&counted(&answers), sender.clock.now());
        if let Some(client) = self.client.as_ref().filter(|_| verdict.concerns_all) {
            client.slow_down();
        }
        progress.put(answers.into_iter().map(|(place, answer)| (place, answer::outcome(answer, &verdict))));
    }

    /// Sends requests with a header of the sender, and returns their answers. Passes those to `some` that came while others are late.
    async fn answers<D: HostDialect>(
        &self,
        sender: &HostSender<D>,
        authorization: Option<&HeaderValue>,
        batch: &HostBatch,
        places: &[usize],
        cut: SharedCut<'_>,
        some: impl FnOnce(Vec<Option<Answer>>) + Send,
    ) -> Vec<Answer> {
        let mut headers = batch.headers.clone();
        headers.extend(authorization.map(|header| (AUTHORIZATION, header.clone())));
        let (now, requests) = (sender.clock.now(), &*batch.requests);
        let over_http1 = |places: Vec<usize>| {
            let call = Http1Call { origin: &self.origin, headers: header_map(&headers), requests, now };
            let cut = cut.clone();
            async move { sender.http1.send(&sender.dialect, call, &places, cut).await }
        };
        let Some(client) = self.client.as_ref().filter(|_| !self.is_http1.load(Relaxed)) else {
            return over_http1(places.to_vec()).await;
        };
        let subset =
            Subset { of: Arc::<dyn super::HostRequests>::clone(&batch.requests), places: places.to_vec() };
        let call = RequestBatch {
            constant: headers.clone(),
            path: None,
            requests: Arc::new(subset),
            start_within: batch.start_within,
            keep: D::KEEP,
            repeated: batch.repeated,
        };
        let sending = client.start(call);
        if let Some(part) = sending.most(cut.clone()).await {
            let (answers, older) = read(&sender.dialect, part.replies, sender.clock.now());
            let mut known: Vec<_> = answers.into_iter().map(Some).collect();
            part.missing.into_iter().chain(older).for_each(|at| known[at] = None);
            some(known);
        }
        let replies = sending.all(cut.clone()).await;
        let (mut answers, older) = read(&sender.dialect, replies, sender.clock.now());
        if !older.is_empty() {
            self.is_http1.store(true, Relaxed);
            let again = over_http1(older.iter().map(|at| places[*at]).collect()).await;
            older.into_iter().zip(again).for_each(|(at, answer)| answers[at] = answer);
        }
        answers
    }
}

/// Reads replies. Returns the answers, and the places whose connection speaks HTTP/1.1 only.
fn read<D: HostDialect>(dialect: &D, replies: Replies, now: Timestamp) -> (Vec<Answer>, Vec<usize>) {
    let mut answers = vec![Answer::Accepted; replies.len()];
    let mut older = Vec::new();
    for (at, reply) in replies.into_others() {
        answers[at] = match reply {
            Reply::Answered(response) => {
                dialect.read(&HostResponse::Http2(&response), replies::wait(&response, now))
            }
            Reply::NotSent(Fault::Alpn) => {
                older.push(at);
                Answer::Unreached
            }
            Reply::NotSent(Fault::AddressRefused(_)) => Answer::AddressRefused,
            Reply::NotSent(Fault::Request(_)) => Answer::Unwritten,
            Reply::NotSent(_) => Answer::Unreached,
            Reply::Unanswered(_) => Answer::Unanswered,
        };
    }
    (answers, older)
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
            Answer::Unwritten | Answer::AddressRefused => continue,
            _ => &mut counts.fine,
        };
        *count += 1;
        counts.accepted += u32::from(*answer == Answer::Accepted);
    }
    counts
}
