//! The holdings of a request at work, in its owner's name: a place, room for its body, and room for its reply.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;
use axum::response::Response;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::held_reply;
use super::request_limits::{REPLY_MAX_BYTES, RequestLimits};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::owner::{Owner, SourceNetwork};
use crate::shares::{ShareExhausted, SharePart};

/// Longest wait of a list for room for its reply: the owner's other replies are read meanwhile.
const REPLY_WAIT: Duration = Duration::from_secs(5);

/// Held by the layer around a route and, in the request's extensions, by whoever reads the request. It speaks for the address that
/// the request came from until it is found out who asks.
#[derive(Debug, Clone)]
pub(crate) struct RequestPermit(Arc<PermitShared>);

#[derive(Debug)]
struct PermitShared {
    limits: Arc<RequestLimits>,
    network: SourceNetwork,
    /// Whether the answer lasts as long as there is something to tell.
    lasts: bool,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    owner: Owner,
    place: Option<SharePart>,
    arriving: Option<SharePart>,
    body: Option<SharePart>,
    reply: Option<SharePart>,
    reply_bytes: usize,
    /// Whether the reader of the body counts what it makes of it, and not what comes.
    counts_unpacked: bool,
}

impl RequestPermit {
    /// Holds nothing yet, in the name of an address.
    pub(in crate::face) fn new(limits: &Arc<RequestLimits>, network: SourceNetwork, lasts: bool) -> Self {
        let held = Mutex::new(Held {
            owner: Owner::Address(network),
            place: None,
            arriving: None,
            body: None,
            reply: None,
            reply_bytes: 0,
            counts_unpacked: false,
        });
        Self(Arc::new(PermitShared { limits: limits.clone(), network, lasts, held }))
    }

    /// Returns the permit of a request; no route can be served without the layer that puts it there.
    pub(crate) fn of(extensions: &Extensions) -> ServiceResult<Self> {
        extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!("a route is served that has no limits");
            Problem::new(ErrorCode::Internal, "the server failed at this request")
        })
    }

    /// Returns where the request comes from.
    pub(crate) fn network(&self) -> SourceNetwork {
        self.0.network
    }

    /// Returns who answers for what the request takes.
    pub(in crate::face) fn owner(&self) -> Owner {
        self.lock().owner
    }

    /// Takes a place for a request that needs no key.
    pub(in crate::face) fn open(&self) -> ServiceResult<()> {
        let mut held = self.lock();
        self.count_request(held.owner)?;
        self.take_place(&mut held)
    }

    /// Counts a request that a key was wanted for and that nobody known has made, in the name of its address.
    pub(in crate::face) fn count_unknown(&self) -> ServiceResult<()> {
        let owner = self.owner();
        if matches!(owner, Owner::Address(_)) { self.count_request(owner) } else { Ok(()) }
    }

    /// Finds that somebody asks, and takes a place in this name, unless it holds one.
    pub(crate) fn own(&self, owner: impl Into<Owner>) -> ServiceResult<()> {
        let mut held = self.lock();
        self.pass(&mut held, owner.into())?;
        if held.place.is_some() { Ok(()) } else { self.take_place(&mut held) }
    }

    /// Finds that somebody asks, and takes no place yet: the body comes first.
    pub(crate) fn name(&self, owner: Owner) -> ServiceResult<()> {
        self.pass(&mut self.lock(), owner)
    }

    /// Takes room for so many more bytes of the body.
    pub(in crate::face) fn grow(&self, bytes: usize) -> ServiceResult<()> {
        let mut held = self.lock();
        let owner = held.owner;
        held.body.get_or_insert_with(|| self.0.limits.bodies.part(owner)).grow(bytes).map_err(no_room)
    }

    /// Frees room that was taken for what the body was unpacked with.
    pub(in crate::face) fn shrink(&self, bytes: usize) {
        if let Some(body) = &mut self.lock().body {
            body.count(body.amount().saturating_sub(bytes));
        }
    }

    /// Has what the reader makes of the body counted in place of what comes.
    pub(in crate::face) fn count_unpacked(&self) {
        self.lock().counts_unpacked = true;
    }

    /// Counts bytes of the body that have come.
    pub(in crate::face) fn came(&self, bytes: usize) -> ServiceResult<()> {
        if self.lock().counts_unpacked { Ok(()) } else { self.grow(bytes) }
    }

    /// Takes a place among those whose body is awaited.
    pub(in crate::face) fn await_body(&self) -> ServiceResult<()> {
        let mut held = self.lock();
        if held.arriving.is_none() {
            held.arriving = Some(self.0.limits.arriving.take(held.owner, 1).map_err(no_place)?);
        }
        Ok(())
    }

    /// Frees the place: nothing more is awaited.
    pub(in crate::face) fn body_came(&self) {
        self.lock().arriving = None;
    }

    /// Returns whether somebody is known who asks.
    pub(in crate::face) fn has_name(&self) -> bool {
        !matches!(self.lock().owner, Owner::Address(_))
    }

    /// Takes room for a reply that may be long, once for all operations of a request; waits for it while others are being taken.
    pub(in crate::face) async fn reserve_reply(&self) -> ServiceResult<()> {
        let owner = self.owner();
        if self.lock().reply.is_some() {
            return Ok(());
        }
        let taken = self.0.limits.replies.taken_when_there(owner, REPLY_MAX_BYTES);
        let taken = timeout(REPLY_WAIT, taken).await.map_err(|_| no_reply())?;
        self.lock().reply = Some(taken);
        Ok(())
    }

    /// Refuses one more operation of a request whose replies take as much as they may together.
    pub(in crate::face) fn require_reply_room(&self) -> ServiceResult<()> {
        if self.lock().reply_bytes < REPLY_MAX_BYTES {
            return Ok(());
        }
        let detail = format!("the replies of this request take {REPLY_MAX_BYTES} bytes already");
        Err(Problem::new(ErrorCode::PayloadTooLarge, detail).with_hint("ask for the rest in another request"))
    }

    /// Counts a page, or refuses it when the replies of the request would take more than they may together.
    pub(in crate::face) fn note_page(&self, bytes: usize) -> ServiceResult<()> {
        let before = self.lock().reply_bytes;
        // The first is as long as it is: a page ends there by itself.
        if before > 0 && before.saturating_add(bytes) > REPLY_MAX_BYTES {
            self.note_reply(REPLY_MAX_BYTES - before.min(REPLY_MAX_BYTES));
            return self.require_reply_room();
        }
        self.note_reply(bytes);
        Ok(())
    }

    /// Counts the reply of one operation.
    pub(in crate::face) fn note_reply(&self, bytes: usize) {
        // What is looked at again and again is sent piece by piece, and no piece waits for the next.
        if self.0.lasts {
            return;
        }
        let mut held = self.lock();
        held.reply_bytes += bytes;
        let (all, owner) = (held.reply_bytes, held.owner);
        let reply = held.reply.get_or_insert_with(|| self.0.limits.replies.part(owner));
        if reply.amount() < all {
            reply.count(all);
        }
    }

    /// Returns the room of a reply of so many bytes, for as long as it is not taken.
    pub(in crate::face) fn room_of_reply(&self, bytes: usize) -> SharePart {
        let mut held = self.lock();
        let owner = held.owner;
        let mut part = held.reply.take().unwrap_or_else(|| self.0.limits.replies.part(owner));
        part.count(bytes);
        part
    }

    /// Frees what the request held, and has its answer hold the room that it takes until it is taken.
    pub(in crate::face) fn answered(&self, answer: Response) -> Response {
        let answer = held_reply::held(self, answer);
        if !self.0.lasts {
            let mut held = self.lock();
            (held.place, held.arriving, held.body, held.reply) = (None, None, None, None);
        }
        answer
    }

    /// Passes all that is held on to whoever was found to ask.
    fn pass(&self, held: &mut Held, owner: Owner) -> ServiceResult<()> {
        // Who speaks for an app in a smaller part keeps that part.
        let is_smaller_part = matches!(owner, Owner::App(app) if held.owner.app() == Some(app));
        if held.owner == owner || is_smaller_part {
            return Ok(());
        }
        self.count_request(owner)?;
        // Unread replies of the same owner: whoever takes none gets no more.
        self.0.limits.replies.take(owner, 0).map_err(|_| no_reply())?;
        held.place = None;
        for part in [&mut held.arriving, &mut held.body, &mut held.reply].into_iter().flatten() {
            part.pass_to(owner).map_err(no_room)?;
        }
        held.owner = owner;
        Ok(())
    }

    fn take_place(&self, held: &mut Held) -> ServiceResult<()> {
        let limits = &self.0.limits;
        let places = if self.0.lasts { &limits.lasting } else { &limits.places };
        limits.replies.take(held.owner, 0).map_err(|_| no_reply())?;
        held.place = Some(places.take(held.owner, 1).map_err(no_place)?);
        Ok(())
    }

    fn count_request(&self, owner: Owner) -> ServiceResult<()> {
        self.0.limits.rates.take(owner).map_err(|wait| {
            let seconds = (wait.as_secs_f64().ceil() as u32).max(1);
            let problem = Problem::new(ErrorCode::RateLimited, "more is asked than is allowed in a second");
            Problem { retry_after_seconds: Some(seconds), ..problem }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock()
    }
}

fn no_place(spent: ShareExhausted) -> Problem {
    let whose = spent.whose();
    Problem::new(code_of(spent), format!("as many requests{whose} are worked on as are allowed at once"))
}

/// Returns the problem of bytes for which there is no room.
pub(in crate::face) fn no_room(spent: ShareExhausted) -> Problem {
    let whose = spent.whose();
    Problem::new(code_of(spent), format!("the bodies{whose} take as much memory as is allowed at once"))
}

fn no_reply() -> Problem {
    let detail = "replies that were asked for and are not read yet take as much memory as is allowed at once";
    Problem::new(ErrorCode::RateLimited, detail).with_hint("read them first")
}

/// Only what apps share is the server's trouble; all else is that of who asks.
const fn code_of(spent: ShareExhausted) -> ErrorCode {
    match spent {
        ShareExhausted::All => ErrorCode::Unavailable,
        ShareExhausted::App | ShareExhausted::Part | ShareExhausted::Address | ShareExhausted::Nameless => {
            ErrorCode::RateLimited
        }
    }
}
