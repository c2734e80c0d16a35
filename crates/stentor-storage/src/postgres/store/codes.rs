//! Codes of states as they stand in the text of statements.
//!
//! A partial index serves a statement only if its condition stands in the text: a bound parameter would be known too late for
//! the planner, or make it plan anew with each binding. So these come from the enums of core, which name each code once.

use stentor_core::campaign::CampaignState;
use stentor_core::chunk::ChunkState;
use stentor_core::schedule::ScheduleState;

pub(super) const QUEUED: u8 = ChunkState::Queued.code();
pub(super) const LEASED: u8 = ChunkState::Leased.code();
pub(super) const SETTLED: u8 = ChunkState::Settled.code();
pub(super) const QUARANTINED: u8 = ChunkState::Quarantined.code();

pub(super) const SCHEDULED: u8 = CampaignState::Scheduled.code();
pub(super) const RUNNING: u8 = CampaignState::Running.code();
pub(super) const PAUSED: u8 = CampaignState::Paused.code();
pub(super) const CANCELED: u8 = CampaignState::Canceled.code();

pub(super) const ACTIVE: u8 = ScheduleState::Active.code();
