//! The subject of an operation: ids and names, as text in the faces.

use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, CampaignId, DeviceId, KeyId, MessageId, ProposalId, ScheduleId};
use stentor_core::name::{ChannelId, ExternalId, GroupName, ServiceName, TopicName};

use crate::contract::{ErrorCode, Problem, ServiceResult};

/// One part of a subject.
pub(in crate::face) trait Segment: Sized {
    fn read(text: &str) -> ServiceResult<Self>;
}

/// All parts of a subject, in order; each text comes with the name of the part in the table.
pub(in crate::face) trait Segments: Sized {
    fn read<'a>(named: &mut impl Iterator<Item = (&'a str, &'a str)>) -> ServiceResult<Self>;
}

impl Segments for () {
    fn read<'a>(_: &mut impl Iterator<Item = (&'a str, &'a str)>) -> ServiceResult<Self> {
        Ok(())
    }
}

impl<T: Segment> Segments for T {
    fn read<'a>(named: &mut impl Iterator<Item = (&'a str, &'a str)>) -> ServiceResult<Self> {
        let (name, text) = named.next().unwrap_or_default();
        <T as Segment>::read(text).map_err(|mut problem| {
            // The caller knows the field by its name in the table, not by the name of its type.
            problem.field = problem.field.map(|_| name.to_owned());
            problem
        })
    }
}

impl<A: Segment, B: Segment> Segments for (A, B) {
    fn read<'a>(named: &mut impl Iterator<Item = (&'a str, &'a str)>) -> ServiceResult<Self> {
        Ok((<A as Segments>::read(named)?, <B as Segments>::read(named)?))
    }
}

macro_rules! id_segments {
    ($($id:ident = $word:literal;)*) => {$(
        impl Segment for $id {
            fn read(text: &str) -> ServiceResult<Self> {
                text.parse().map_err(|_| {
                    let hint = concat!("such an id begins with `", $word, "`");
                    Problem::new(ErrorCode::NotFound, "there is no such id").with_hint(hint)
                })
            }
        }
    )*};
}

id_segments! {
    AppId = "app_";
    KeyId = "key_";
    DeviceId = "dev_";
    MessageId = "msg_";
    ScheduleId = "sch_";
    ProposalId = "prp_";
}

impl Segment for CampaignId {
    fn read(text: &str) -> ServiceResult<Self> {
        match text.parse::<MessageId>() {
            Ok(message) => Ok(message.into()),
            Err(_) => text.parse().map_err(|_| {
                Problem::new(ErrorCode::NotFound, "there is no such id")
                    .with_hint("such an id begins with `cmp_` or `msg_`")
            }),
        }
    }
}

impl Segment for ProviderKind {
    fn read(text: &str) -> ServiceResult<Self> {
        let known = Self::ALL.iter().copied().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| Problem::new(ErrorCode::NotFound, "there is no such push service"))
    }
}

macro_rules! name_segments {
    ($($name:ident)*) => {$(
        impl Segment for $name {
            fn read(text: &str) -> ServiceResult<Self> {
                Ok($name::new(text)?)
            }
        }
    )*};
}

name_segments! { ChannelId TopicName GroupName ExternalId ServiceName }
