//! Names within a stream: the subjects of tickets, and the consumers of lanes.

use std::str::FromStr;

use stentor_core::chunk::{Lane, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};

/// The subjects of one stream.
#[derive(Debug, Clone)]
pub(super) struct Subjects {
    stream: String,
}

impl Subjects {
    pub(super) const fn new(stream: String) -> Self {
        Self { stream }
    }

    /// Returns the stream's name.
    pub(super) fn stream(&self) -> &str {
        &self.stream
    }

    /// Lists the subjects of the stream.
    pub(super) fn all(&self) -> Vec<String> {
        vec![format!("{}.q.>", self.stream), self.trial()]
    }

    /// Returns the subject of trial messages, which show whether the stream stores anything.
    pub(super) fn trial(&self) -> String {
        format!("{}.trial", self.stream)
    }

    /// Returns the subject, outside of the stream, on which published tickets are announced.
    pub(super) fn wake(&self) -> String {
        format!("{}.wake", self.stream)
    }

    /// Returns where a chunk's ticket lies.
    pub(super) fn ticket(&self, lane: Lane, chunk: ChunkId) -> String {
        format!("{}.{}", self.prefix(lane), chunk.raw())
    }

    /// Returns the subject filter of a chunk's ticket in any lane.
    pub(super) fn of_chunk(&self, chunk: ChunkId) -> String {
        format!("{}.q.*.*.*.{}", self.stream, chunk.raw())
    }

    /// Returns where the tickets of a lane lie.
    pub(super) fn lane(&self, lane: Lane) -> String {
        format!("{}.*", self.prefix(lane))
    }

    fn prefix(&self, lane: Lane) -> String {
        format!("{}.q.{}", self.stream, path(lane, '.'))
    }
}

/// Returns the name of a lane's consumer.
pub(super) fn consumer(lane: Lane) -> String {
    path(lane, '-')
}

/// Returns the lane of which a consumer is.
pub(super) fn lane_of(consumer: &str) -> Option<Lane> {
    let mut parts = consumer.split('-').map(u64::from_str);
    let mut next = || parts.next()?.ok();
    let (provider, app, class) = (next()?, next()?, next()?);
    Some(Lane {
        provider: ProviderKind::from_code(provider.try_into().ok()?)?,
        app: AppId::from_raw(app),
        class: TrafficClass::from_code(class.try_into().ok()?)?,
    })
}

/// Returns the chunk of a ticket's subject.
pub(super) fn chunk_of(subject: &str) -> Option<ChunkId> {
    subject.rsplit('.').next()?.parse().ok().map(ChunkId::from_raw)
}

fn path(lane: Lane, between: char) -> String {
    let Lane { provider, app, class } = lane;
    format!("{}{between}{}{between}{}", provider.code(), app.raw(), class.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_chunks_are_read_from_the_names_that_they_have() {
        let subjects = Subjects::new("push".to_owned());
        for provider in ProviderKind::ALL {
            for class in TrafficClass::ALL {
                let lane = Lane { provider: *provider, app: AppId::from_raw(7), class: *class };
                assert_eq!(lane_of(&consumer(lane)), Some(lane));
                let subject = subjects.ticket(lane, ChunkId::from_raw(42));
                assert_eq!(chunk_of(&subject), Some(ChunkId::from_raw(42)));
                assert!(subject.starts_with(subjects.lane(lane).trim_end_matches('*')));
            }
        }
        assert_eq!((lane_of("somebody-elses"), chunk_of("push.trial")), (None, None));
    }
}
