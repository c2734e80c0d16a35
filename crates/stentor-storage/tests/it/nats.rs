//! The queue on NATS JetStream, tested by the suite. As in the server, a layer over it holds back tickets that are not due.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_core::time::Timestamp;
use stentor_storage::conformance::QueueHome;
use stentor_storage::conformance::scene::at;
use stentor_storage::held::HeldQueue;
use stentor_storage::nats::NatsSettings;
use stentor_storage::queue_suite;
use stentor_storage::sqlite::SqliteQueue;

use crate::nats_server::{NatsServer, server};

/// A stream of the case's own; where there is no server, the queue in memory stands in for it, and the case proves nothing.
struct Home(Option<(&'static NatsServer, NatsSettings)>);

impl Home {
    fn new() -> Self {
        Self(server().map(|server| (server, server.stream())))
    }
}

/// A clock that stands at the beginning of each case: the cases pass the time when they lease.
struct Beginning;

impl Clock for Beginning {
    fn now(&self) -> Timestamp {
        at(0)
    }
}

#[async_trait]
impl QueueHome for Home {
    async fn open(&self) -> Box<dyn Queue> {
        match &self.0 {
            None => Box::new(SqliteQueue::temporary().expect("a queue")),
            Some((server, settings)) => {
                Box::new(HeldQueue::over(server.queue(settings), Arc::new(Beginning)))
            }
        }
    }

    fn persists(&self) -> bool {
        self.0.is_some()
    }
}

queue_suite!(queue, Home::new);
