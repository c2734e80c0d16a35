//! What a request holds while it is worked on: a place, and room for the bytes of its body.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Extensions;
use stentor_core::id::AppId;

use super::middleware::RequestLimits;
use crate::service::{ErrorCode, Problem, ServiceResult};
use crate::shares::{ShareExhausted, SharePart};

/// Held by the middleware and, in the request's extensions, by whoever reads the request; empty until the key is known.
#[derive(Debug, Clone, Default)]
pub(in crate::face) struct RequestPermit(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    app: Option<AppId>,
    place: Option<SharePart>,
    body: Option<SharePart>,
}

impl RequestPermit {
    /// Takes a place in the name of an app or of the operator; once for a request.
    pub(in crate::face) fn take(
        extensions: &Extensions,
        limits: &RequestLimits,
        app: Option<AppId>,
    ) -> ServiceResult<()> {
        extensions.get::<Self>().map_or(Ok(()), |permit| permit.take_place(limits, app))
    }

    /// Takes a place in the name of an app or of the operator, unless it holds one in this name.
    pub(in crate::face) fn take_place(
        &self,
        limits: &RequestLimits,
        app: Option<AppId>,
    ) -> ServiceResult<()> {
        let mut held = self.lock();
        if held.place.is_some() && held.app == app {
            return Ok(());
        }
        held.place = None;
        held.place = Some(limits.places.take(app, 1).map_err(no_place)?);
        held.app = app;
        Ok(())
    }

    /// Takes room for so many more bytes of the body.
    pub(in crate::face) fn grow(
        extensions: &Extensions,
        limits: &RequestLimits,
        bytes: usize,
    ) -> ServiceResult<()> {
        extensions.get::<Self>().map_or(Ok(()), |permit| permit.take_room(limits, bytes))
    }

    /// Takes room for so many more bytes, beside those of the body as it came.
    pub(in crate::face) fn take_room(&self, limits: &RequestLimits, bytes: usize) -> ServiceResult<()> {
        let mut held = self.lock();
        let app = held.app;
        held.body.get_or_insert_with(|| limits.bodies.part(app)).grow(bytes).map_err(no_room)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Only what apps share is the server's trouble; all else is that of who asks.
const fn code_of(spent: ShareExhausted) -> ErrorCode {
    match spent {
        ShareExhausted::All => ErrorCode::Unavailable,
        ShareExhausted::App | ShareExhausted::Part | ShareExhausted::Address | ShareExhausted::Nameless => {
            ErrorCode::RateLimited
        }
    }
}
