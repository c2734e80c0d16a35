//! Resources held by a request and charged to its owner: a place, room for its body, and room for its reply.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Extensions;
use axum::response::Response;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::held_reply;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::request_limits::{REPLY_MAX_BYTES, RequestLimits};
use crate::owner::{Owner, SourceNetwork};
use crate::shares::{ShareExhausted, SharePart};

/// Maximum time that a list waits for room for its reply, while the client reads the owner's other replies.
const REPLY_WAIT: Duration = Duration::from_secs(5);

/// Permit of a request, shared by the layer around its route and, through the request's extensions, by its readers. Until authentication,
/// the owner is the address of the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestPermit(Arc<PermitShared>);

#[derive(Debug)]
struct PermitShared {
    limits: Arc<RequestLimits>,
    network: SourceNetwork,
    /// True if the response is open-ended, such as a watch.
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
    /// True if the reader counts the decompressed bytes of the body, in place of those received.
    counts_unpacked: bool,
}

impl RequestPermit {
    /// Creates a permit that holds nothing, owned by an address.
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

    /// Returns the permit of a request. The layer that creates it is part of every route that can be served.
    pub(crate) fn of(extensions: &Extensions) -> ServiceResult<Self> {
        extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!("a route is served that has no limits");
            Problem::new(ErrorCode::Internal, "the server failed at this request")
        })
    }

    /// Returns the network of the request.
    pub(crate) fn network(&self) -> SourceNetwork {
        self.0.network
    }

    /// Returns true if the response is open-ended.
    pub(in crate::face) fn lasts(&self) -> bool {
        self.0.lasts
    }

    /// Returns the owner of the request's resources.
    pub(in crate::face) fn owner(&self) -> Owner {
        self.lock().owner
    }

    /// Takes a place for a request without a key.
    pub(in crate::face) fn open(&self) -> ServiceResult<()> {
        let mut held = self.lock();
        self.count_request(held.owner)?;
        self.take_place(&mut held)
    }

    /// Counts a request without a valid key on a route that requires one, charged to its address.
    pub(in crate::face) fn count_unknown(&self) -> ServiceResult<()> {
        let owner = self.owner();
        if matches!(owner, Owner::Address(_)) { self.count_request(owner) } else { Ok(()) }
    }

    /// Sets the authenticated owner and takes a place for it, unless the permit has one.
    pub(crate) fn own(&self, owner: impl Into<Owner>) -> ServiceResult<()> {
        let mut held = self.lock();
        self.pass(&mut held, owner.into())?;
        if held.place.is_some() { Ok(()) } else { self.take_place(&mut held) }
    }

    /// Sets the authenticated owner without a place, because the body comes first.
    pub(crate) fn name(&self, owner: Owner) -> ServiceResult<()> {
        self.pass(&mut self.lock(), owner)
    }

    /// Reserves room for more bytes of the body.
    pub(in crate::face) fn grow(&self, bytes: usize) -> ServiceResult<()> {
        let mut held = self.lock();
        let owner = held.owner;
        held.body.get_or_insert_with(|| self.0.limits.bodies.part(owner)).grow(bytes).map_err(no_room)
    }

    /// Releases room that was reserved for decompression.
    pub(in crate::face) fn shrink(&self, bytes: usize) {
        if let Some(body) = &mut self.lock().body {
            body.count(body.amount().saturating_sub(bytes));
        }
    }

    /// Makes the decompressed bytes of the body count, in place of those received.
    pub(in crate::face) fn count_unpacked(&self) {
        self.lock().counts_unpacked = true;
    }

    /// Counts received bytes of the body.
    pub(in crate::face) fn came(&self, bytes: usize) -> ServiceResult<()> {
        if self.lock().counts_unpacked { Ok(()) } else { self.grow(bytes) }
    }

    /// Takes a place among the requests with an arriving body.
    pub(in crate::face) fn await_body(&self) -> ServiceResult<()> {
        let mut held = self.lock();
        if held.arriving.is_none() {
            held.arriving = Some(self.0.limits.arriving.take(held.owner, 1).map_err(no_place)?);
        }
        Ok(())
    }

    /// Releases the place: the body is complete.
    pub(in crate::face) fn body_came(&self) {
        self.lock().arriving = None;
    }

    /// Returns true if the request is authenticated.
    pub(in crate::face) fn has_name(&self) -> bool {
        !matches!(self.lock().owner, Owner::Address(_))
    }

    /// Reserves room for a reply that may be long, once for all operations of a request. Waits while other replies are being sent.
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

    /// Rejects a further operation of a request with replies that have reached the total limit.
    pub(in crate::face) fn require_reply_room(&self) -> ServiceResult<()> {
        if self.lock().reply_bytes < REPLY_MAX_BYTES {
            return Ok(());
        }
        let detail = format!("the replies of this request take {REPLY_MAX_BYTES} bytes already");
        Err(Problem::new(ErrorCode::PayloadTooLarge, detail).with_hint("request the rest separately"))
    }

    /// Counts a page, or rejects it if the replies of the request would exceed the total limit.
    pub(in crate::face) fn note_page(&self, bytes: usize) -> ServiceResult<()> {
        let before = self.lock().reply_bytes;
        // The first page may have any size: pages have a limit of their own.
        if before > 0 && before.saturating_add(bytes) > REPLY_MAX_BYTES {
            self.note_reply(REPLY_MAX_BYTES - before.min(REPLY_MAX_BYTES));
            return self.require_reply_room();
        }
        self.note_reply(bytes);
        Ok(())
    }

    /// Counts the reply of an operation.
    pub(in crate::face) fn note_reply(&self, bytes: usize) {
        // A watch sends its states one after the other, and keeps none.
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

    /// Returns the room for a reply of this size, which the reply holds until it is sent.
    pub(in crate::face) fn room_of_reply(&self, bytes: usize) -> SharePart {
        let mut held = self.lock();
        let owner = held.owner;
        let mut part = held.reply.take().unwrap_or_else(|| self.0.limits.replies.part(owner));
        part.count(bytes);
        part
    }

    /// Releases the resources of the request. The response keeps its own room until it is sent.
    pub(in crate::face) fn answered(&self, answer: Response) -> Response {
        let answer = held_reply::held(self, answer);
        if !self.0.lasts {
            let mut held = self.lock();
            (held.place, held.arriving, held.body, held.reply) = (None, None, None, None);
        }
        answer
    }

    /// Transfers all resources to the authenticated owner.
    fn pass(&self, held: &mut Held, owner: Owner) -> ServiceResult<()> {
        // A caller that is a smaller part of the app keeps its own share.
        let is_smaller_part = matches!(owner, Owner::App(app) if held.owner.app() == Some(app));
        if held.owner == owner || is_smaller_part {
            return Ok(());
        }
        self.count_request(owner)?;
        // Unread replies of the same owner: an owner that reads none gets no more.
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
            let problem =
                Problem::new(ErrorCode::RateLimited, "there are more requests than are allowed in a second");
            Problem { retry_after_seconds: Some(seconds), ..problem }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock()
    }
}

fn no_place(spent: ShareExhausted) -> Problem {
    let whose = spent.whose();
    Problem::new(code_of(spent), format!("as many requests{whose} are in progress as are allowed at once"))
}

/// Returns the error for bytes without room.
pub(in crate::face) fn no_room(spent: ShareExhausted) -> Problem {
    let whose = spent.whose();
    Problem::new(code_of(spent), format!("the bodies{whose} use all the memory that is allowed at once"))
}

fn no_reply() -> Problem {
    let detail = "unread replies use all the memory that is allowed at once";
    Problem::new(ErrorCode::RateLimited, detail).with_hint("read them first")
}

/// Only an exhausted total is the server's fault; the other limits are the caller's.
const fn code_of(spent: ShareExhausted) -> ErrorCode {
    match spent {
        ShareExhausted::All => ErrorCode::Unavailable,
        ShareExhausted::App | ShareExhausted::Part | ShareExhausted::Address | ShareExhausted::Nameless => {
            ErrorCode::RateLimited
        }
    }
}
