//! The cases of the queue.

pub mod depths;
pub mod leases;
pub mod publishing;
pub mod restart;

use std::time::Duration;

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::{Queue, QueueLease};

use super::scene::at;

const MINUTE: Duration = Duration::from_secs(60);

fn lane(app: u64, class: TrafficClass) -> Lane {
    Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(app), class }
}

fn bulk() -> Lane {
    lane(1, TrafficClass::Bulk)
}

fn ticket(chunk: u64, due_seconds: i64) -> Ticket {
    Ticket { chunk: ChunkId::from_raw(chunk), lane: bulk(), due_at: at(due_seconds) }
}

/// Leases the due tickets of the bulk lane for a minute.
async fn take(queue: &dyn Queue, max: usize, now_seconds: i64) -> Vec<QueueLease> {
    queue.lease(bulk(), max, MINUTE, at(now_seconds)).await.expect("asked")
}

async fn publish(queue: &dyn Queue, tickets: &[Ticket]) {
    queue.publish(tickets).await.expect("published");
}

fn numbers(leases: &[QueueLease]) -> Vec<u64> {
    leases.iter().map(|lease| lease.ticket.chunk.raw()).collect()
}
