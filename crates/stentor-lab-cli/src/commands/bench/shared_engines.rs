//! The engines that several servers can share.

use stentor_stage::engines::{StageQueue, StageStore};
use stentor_terminal::failure::CommandFailure;

/// Fails if several servers were to run without a store and a queue that they share.
pub(super) fn check(nodes: u32, store: StageStore, queue: &StageQueue) -> anyhow::Result<()> {
    let is_shared = matches!(queue, StageQueue::Postgres | StageQueue::Nats | StageQueue::NatsAt(_));
    if nodes > 1 && !(store == StageStore::Postgres && is_shared) {
        let sentence =
            "several servers share a database and a queue: add --store postgres and --queue postgres or nats";
        return Err(CommandFailure::usage(sentence).into());
    }
    Ok(())
}
