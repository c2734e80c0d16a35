//! How a connection says GOAWAY and ends.

use super::Driver;
use crate::policy::{AfterGoAway, GoAway};
use crate::service::{Service, WireTotals};
use crate::wire::goaway;
use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep};

const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A connection that has said GOAWAY, or is about to.
pub(super) struct Leaving {
    goaway: GoAway,
    announced: bool,
    closing: Option<Pin<Box<Sleep>>>,
}

/// What to do next about leaving.
pub(super) enum Leave {
    /// Nothing.
    Stay,
    /// Something was written: poll the connection once more.
    PollAgain,
    /// End the connection.
    Now,
}

impl<S: Service, IO: AsyncRead + AsyncWrite + Unpin> Driver<S, IO> {
    /// Starts to leave; requests taken from now on stay unprocessed.
    pub(super) fn leave(&mut self, goaway: GoAway) {
        if self.leaving.is_none() {
            self.leaving = Some(Leaving { goaway, announced: false, closing: None });
        }
    }

    /// Returns whether the request just counted is above the last stream id that a GOAWAY names or will name.
    pub(super) fn is_above_goaway(&mut self) -> bool {
        if self.leaving.is_none()
            && let Some(goaway) = self.planned_goaway()
            && self.seen > goaway.after_requests.saturating_sub(goaway.unprocessed)
        {
            let goaway = goaway.clone();
            self.leave(goaway);
        }
        self.leaving.is_some()
    }

    /// Starts to leave after the last request that a planned GOAWAY covers, when none is to stay unprocessed.
    pub(super) fn leave_after_requests(&mut self) {
        let Some(goaway) = self.planned_goaway() else { return };
        if goaway.unprocessed == 0 && self.seen >= goaway.after_requests {
            let goaway = goaway.clone();
            self.leave(goaway);
        }
    }

    fn planned_goaway(&self) -> Option<&GoAway> {
        let goaway = self.judge.policy.goaway.as_ref()?;
        goaway.connections.is_none_or(|limit| self.connection_number <= limit).then_some(goaway)
    }

    /// Goes on leaving, once every request that has arrived is taken.
    pub(super) fn poll_leaving(&mut self, cx: &mut Context<'_>) -> Leave {
        let idle = self.bodies.is_empty() && self.waiting.is_empty();
        let Some(leaving) = &mut self.leaving else { return Leave::Stay };
        if !leaving.announced {
            leaving.announced = true;
            WireTotals::add(&self.service.desk().wire.goaways);
            let GoAway { code, debug, .. } = &leaving.goaway;
            self.wire.inject(&goaway(self.last_processed_id, *code, debug.as_bytes()));
            return Leave::PollAgain;
        }
        if let Some(limit) = &mut leaving.closing {
            return if limit.as_mut().poll(cx).is_ready() { Leave::Now } else { Leave::Stay };
        }
        match leaving.goaway.then {
            AfterGoAway::Linger => Leave::Stay,
            AfterGoAway::Drain if !idle => Leave::Stay,
            AfterGoAway::Drain | AfterGoAway::Close => {
                leaving.closing = Some(Box::pin(sleep(CLOSE_LIMIT)));
                self.lost.extend([std::mem::take(&mut self.waiting)]);
                self.wire.finish();
                Leave::PollAgain
            }
        }
    }
}
