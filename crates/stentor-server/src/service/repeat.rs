//! Idempotency: the first reply is stored with the change, and a repeated request gets it again.

use serde::Serialize;
use serde::de::DeserializeOwned;
use stentor_core::id::AppId;
use stentor_core::ports::store::{Idempotent, IdempotentReply, StoredReply};

use super::{ErrorCode, Problem, Service, ServiceCounters, ServiceResult};
use crate::contract::{Kept, Repeat};

impl Service {
    /// Looks up the first reply to a request, before anything is done.
    pub(super) async fn replay<T: DeserializeOwned>(
        &self,
        app: AppId,
        repeat: Option<&Repeat>,
    ) -> ServiceResult<Option<Kept<T>>> {
        // Only an optimization: the commit ensures that there is a single reply.
        let Some(Repeat { key, request_hash, former_hash }) = repeat else { return Ok(None) };
        let mut found = self.store.replay(app, key, request_hash).await?;
        // Earlier versions hashed method, path and body; their replies are valid until they are deleted.
        if let (Some(Idempotent::KeyReused), Some(former)) = (&found, former_hash) {
            found = self.store.replay(app, key, former).await?;
        }
        match found {
            Some(Idempotent::Replayed(reply)) => self.replayed(reply).map(Some),
            Some(Idempotent::KeyReused) => Err(key_reused()),
            Some(Idempotent::Done(())) | None => Ok(None),
        }
    }

    /// Decodes a stored reply.
    pub(super) fn replayed<T: DeserializeOwned>(&self, stored: StoredReply) -> ServiceResult<Kept<T>> {
        let reply = serde_json::from_str(&stored.record).map_err(|error| {
            tracing::error!(%error, "a kept reply cannot be read");
            Problem::new(ErrorCode::Internal, "the stored data is damaged")
        })?;
        ServiceCounters::add(&self.counters.replayed, 1);
        Ok(Kept { reply, replayed: true })
    }
}

/// Returns the reply to store with a change, so that a repeat gets the same one.
pub(super) fn to_keep(repeat: Repeat, reply: &impl Serialize) -> ServiceResult<IdempotentReply> {
    let record = serde_json::to_string(reply).map_err(Problem::unwritten)?;
    Ok(IdempotentReply { key: repeat.key, request_hash: repeat.request_hash, reply: StoredReply { record } })
}

/// The error for a key that was used with another request.
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
