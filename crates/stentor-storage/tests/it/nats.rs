//! The queue on NATS JetStream, judged by the suite: over it what is not due is held back, as in the server.

use std::sync::Arc;

use async_trait::async_trait;
use stentor_core::ports::clock::Clock;
use stentor_core::ports::queue::Queue;
use stentor_core::time::Timestamp;
use stentor_storage::conformance::QueueHome;
use stentor_storage::conformance::scene::at;
use stentor_storage::held::HeldQueue;
use stentor_storage::memory::MemoryQueue;
use stentor_storage::nats::NatsSettings;
use stentor_storage::queue_suite;

use crate::nats_server::{NatsServer, server};

/// A stream of the case's own; where there is no server, the queue in memory stands in for it, and the case proves nothing.
struct Home(Option<(&'static NatsServer, NatsSettings)>);

impl Home {
    fn new() -> Self {
        Self(server().map(|server| (server, server.stream())))
    }
}

/// The instant at which each case begins, forever: the cases say what time it is when they lease.
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
            None => Box::new(MemoryQueue::new()),
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
