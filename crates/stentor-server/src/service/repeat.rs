//! Idempotency: the first reply is kept with what was done, and a repeat gets it again.

use serde::Serialize;
use serde::de::DeserializeOwned;
use stentor_core::id::AppId;
use stentor_core::ports::store::{Idempotent, IdempotentReply, StoredReply};

use super::{ErrorCode, Problem, Service, ServiceCounters, ServiceResult};
use crate::contract::{Kept, Repeat};

impl Service {
    /// Looks for the first reply to a request, before anything is done.
    pub(super) async fn replay<T: DeserializeOwned>(
        &self,
        app: AppId,
        repeat: Option<&Repeat>,
    ) -> ServiceResult<Option<Kept<T>>> {
        // Only spares the work: that the first reply stays the only one is decided with the commit.
        let Some(Repeat { key, request_hash, former_hash }) = repeat else { return Ok(None) };
        let mut found = self.store.replay(app, key, request_hash).await?;
        // Earlier versions hashed method, path and body, and their replies are good until they are forgotten.
        if let (Some(Idempotent::KeyReused), Some(former)) = (&found, former_hash) {
            found = self.store.replay(app, key, former).await?;
        }
        match found {
            Some(Idempotent::Replayed(reply)) => self.replayed(reply).map(Some),
            Some(Idempotent::KeyReused) => Err(key_reused()),
            Some(Idempotent::Done(())) | None => Ok(None),
        }
    }

    /// Reads a reply that was kept.
    pub(super) fn replayed<T: DeserializeOwned>(&self, stored: StoredReply) -> ServiceResult<Kept<T>> {
        let reply = serde_json::from_str(&stored.record).map_err(|error| {
            tracing::error!(%error, "a kept reply cannot be read");
            Problem::new(ErrorCode::Internal, "the stored data is damaged")
        })?;
        ServiceCounters::add(&self.counters.replayed, 1);
        Ok(Kept { reply, replayed: true })
    }
}

/// Returns what is kept with the thing that was asked for, so that a repeat gets the same reply.
pub(super) fn to_keep(repeat: Repeat, reply: &impl Serialize) -> ServiceResult<IdempotentReply> {
    let record = serde_json::to_string(reply).map_err(Problem::unwritten)?;
    Ok(IdempotentReply { key: repeat.key, request_hash: repeat.request_hash, reply: StoredReply { record } })
}

/// Refuses a key that was used for another request.
pub(super) fn key_reused() -> Problem {
    Problem::new(ErrorCode::IdempotencyKeyReused, "the key was used before with another request")
}

#[cfg(test)]
mod tests {
    use stentor_core::name::IdempotencyKey;

    use super::*;

    #[test]
    fn a_reply_that_cannot_be_written_is_not_kept() {
        struct Unwritable;
        impl Serialize for Unwritable {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no words for it"))
            }
        }
        let key = IdempotencyKey::new("k").expect("fits");
        let repeat = Repeat { key, request_hash: [0; 32], former_hash: None };
        let refused = to_keep(repeat.clone(), &Unwritable).expect_err("an empty reply would be kept");
        assert_eq!(refused.code, ErrorCode::Internal);
        assert_eq!(to_keep(repeat, &"done").expect("a text").reply.record, "\"done\"");
    }
}
