//! Faults of a cluster, with their order and times, drawn from a seed.

use super::ClusterAbilities;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::str::FromStr;
use std::time::Duration;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// A server is killed (kill -9) and started again at once.
    NodeKill,
    /// A server is killed and stays away until the others consider it dead.
    NodeAbsence,
    /// A server is stopped (SIGSTOP) until the others consider it dead, and is then continued.
    NodePause,
    /// A server's clock is an hour wrong for a while.
    NodeClock,
    /// A server is killed while its clock is an hour ahead, and returns with the right time after the others considered it dead.
    NodeClockDeath,
    /// A server ends in order, and another version starts in its place: the older one, or the present one if the older one ran.
    NodeVersion,
    /// A server cannot reach the primary of the database.
    NodeFromDatabase,
    /// A server cannot reach any nats-server.
    NodeFromQueue,
    /// A server cannot reach the nats-server that leads the stream, but can reach the other two.
    NodeFromQueueLeader,
    /// A server cannot reach the standby, and is killed and restarted in this state: it has to find the primary again.
    NodeFromStandby,
    /// A server cannot reach the push services: their answers are lost.
    NodeFromPushServices,
    /// The primary of the database is killed and started again.
    DatabaseKill,
    /// The primary is killed and the standby promoted.
    DatabasePromotion,
    /// The primary vanishes without notice, like a machine that loses its power, and the standby is promoted.
    DatabaseLoss,
    /// The standby is killed and started again; in between, nothing is committed.
    StandbyKill,
    /// Primary and standby cannot reach each other; during that time nothing is committed.
    StandbyPartition,
    /// The primary's clock is some minutes wrong for a while, and all servers follow it.
    DatabaseClock,
    /// The primary's disk is full.
    DatabaseDiskFull,
    /// The nats-server that leads the stream is killed and started again.
    QueueKill,
    /// The nats-server that leads the stream cannot reach the other two.
    QueuePartition,
    /// A nats-server that does not lead the stream cannot reach the other two, which stay together; servers reach all three.
    QueueFollowerPartition,
    /// The nats-server that leads the stream and one other cannot reach each other; both reach the third.
    QueuePairPartition,
    /// The stream is deleted while everything runs.
    QueueDeletion,
    /// All nats-servers are killed and all their data is removed.
    QueueWipe,
    /// A push service is killed (kill -9) and started again.
    PushServiceKill,
}

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedFault {
    /// Kind of the fault.
    pub(crate) kind: FaultKind,
    /// Index of its target, modulo the number of possible targets.
    pub(crate) place: usize,
    /// Time without faults before it.
    pub(crate) before: Duration,
    /// Duration of the fault.
    pub(crate) lasts: Duration,
}

/// Time without faults between two faults, in milliseconds.
const BETWEEN_MS: std::ops::Range<u64> = 300..1_500;

impl FaultKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 25] = [
        Self::NodeKill,
        Self::NodeAbsence,
        Self::NodePause,
        Self::NodeClock,
        Self::NodeClockDeath,
        Self::NodeVersion,
        Self::NodeFromDatabase,
        Self::NodeFromQueue,
        Self::NodeFromQueueLeader,
        Self::NodeFromStandby,
        Self::NodeFromPushServices,
        Self::DatabaseKill,
        Self::DatabasePromotion,
        Self::DatabaseLoss,
        Self::StandbyKill,
        Self::StandbyPartition,
        Self::DatabaseClock,
        Self::DatabaseDiskFull,
        Self::QueueKill,
        Self::QueuePartition,
        Self::QueueFollowerPartition,
        Self::QueuePairPartition,
        Self::QueueDeletion,
        Self::QueueWipe,
        Self::PushServiceKill,
    ];

    /// Its name on the command line and in reports.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::NodeKill => "node-kill",
            Self::NodeAbsence => "node-absence",
            Self::NodePause => "node-pause",
            Self::NodeClock => "node-clock",
            Self::NodeClockDeath => "node-clock-death",
            Self::NodeVersion => "node-version",
            Self::NodeFromDatabase => "node-from-database",
            Self::NodeFromQueue => "node-from-queue",
            Self::NodeFromQueueLeader => "node-from-queue-leader",
            Self::NodeFromStandby => "node-from-standby",
            Self::NodeFromPushServices => "node-from-push-services",
            Self::DatabaseKill => "database-kill",
            Self::DatabasePromotion => "database-promotion",
            Self::DatabaseLoss => "database-loss",
            Self::StandbyKill => "standby-kill",
            Self::StandbyPartition => "standby-partition",
            Self::DatabaseClock => "database-clock",
            Self::DatabaseDiskFull => "database-disk-full",
            Self::QueueKill => "queue-kill",
            Self::QueuePartition => "queue-partition",
            Self::QueueFollowerPartition => "queue-follower-partition",
            Self::QueuePairPartition => "queue-pair-partition",
            Self::QueueDeletion => "queue-deletion",
            Self::QueueWipe => "queue-wipe",
            Self::PushServiceKill => "push-service-kill",
        }
    }

    /// Returns the reason for which this cluster cannot have the fault; `None` if it can.
    pub(crate) fn obstacle(self, abilities: &ClusterAbilities) -> Option<&'static str> {
        let ClusterAbilities { can_cut, has_standby, has_nats, has_small_disk, has_clock, has_older } =
            *abilities;
        let needs: &[(bool, &'static str)] = match self {
            Self::NodeClock | Self::NodeClockDeath | Self::DatabaseClock => {
                &[(has_clock, "libfaketime is missing: install faketime")]
            }
            Self::NodeVersion => &[(has_older, "no older program was given: --older PROGRAM")],
            Self::NodeFromDatabase | Self::NodeFromPushServices => &[(can_cut, CUTS)],
            Self::NodeFromQueue
            | Self::NodeFromQueueLeader
            | Self::QueuePartition
            | Self::QueueFollowerPartition
            | Self::QueuePairPartition => &[(has_nats, NATS), (can_cut, CUTS)],
            Self::DatabasePromotion | Self::StandbyKill => &[(has_standby, STANDBY)],
            Self::DatabaseLoss | Self::StandbyPartition | Self::NodeFromStandby => {
                &[(has_standby, STANDBY), (can_cut, CUTS)]
            }
            Self::DatabaseDiskFull => &[(has_small_disk, "no small tmpfs can be mounted: run it as root")],
            Self::QueueKill | Self::QueueDeletion | Self::QueueWipe => &[(has_nats, NATS)],
            _ => &[],
        };
        needs.iter().find(|(is_there, _)| !is_there).map(|(_, why)| *why)
    }

    /// Returns true if the fault may lose the answers to pushes.
    pub(crate) const fn cuts_answers(self) -> bool {
        matches!(self, Self::NodeFromPushServices | Self::PushServiceKill)
    }

    /// Duration in milliseconds. A server counts as dead after three seconds, and an unreachable leader of the stream after four to nine.
    const fn lasts_ms(self) -> std::ops::Range<u64> {
        match self {
            Self::NodeKill
            | Self::NodeVersion
            | Self::QueueDeletion
            | Self::PushServiceKill
            | Self::DatabasePromotion => 0..1,
            Self::NodeAbsence | Self::NodePause | Self::NodeFromDatabase => 3_500..6_000,
            Self::DatabaseKill | Self::StandbyKill | Self::QueueWipe => 0..2_500,
            Self::NodeClock | Self::NodeClockDeath => 2_500..4_000,
            Self::DatabaseClock => 4_000..8_000,
            Self::QueuePartition
            | Self::QueueFollowerPartition
            | Self::QueuePairPartition
            | Self::NodeFromQueueLeader => 5_000..12_000,
            _ => 1_500..5_000,
        }
    }
}

impl PlannedFault {
    /// Returns the index of the nats-server to cut off, and the indexes of those that it cannot reach.
    pub(crate) fn queue_cut(self, servers: usize, leader: usize) -> (usize, Vec<usize>) {
        let others = |of: usize| (1..servers).map(|step| (of + step) % servers).collect();
        let follower = (leader + 1 + self.place % (servers - 1)) % servers;
        match self.kind {
            FaultKind::QueueFollowerPartition => (follower, others(follower)),
            FaultKind::QueuePairPartition => (leader, vec![follower]),
            _ => (leader, others(leader)),
        }
    }
}

const CUTS: &str = "no network namespaces: run it as root";
const NATS: &str = "the queue is not in NATS: --queue nats";
const STANDBY: &str = "there is no standby: leave --no-standby out";

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = || Self::ALL.map(Self::word).join(", ");
        Self::ALL
            .into_iter()
            .find(|kind| kind.word() == text)
            .ok_or_else(|| format!("it is one of {}", words()))
    }
}

/// Draws a number of faults of these kinds. Each round contains every kind once, so that none is rare.
pub(crate) fn plan(kinds: &[FaultKind], faults: u32, seed: u64) -> Vec<PlannedFault> {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut planned = Vec::new();
    while planned.len() < faults as usize && !kinds.is_empty() {
        let mut round = kinds.to_vec();
        round.shuffle(&mut dice);
        for kind in round {
            planned.push(PlannedFault {
                kind,
                place: dice.random_range(0..1_000_000),
                before: Duration::from_millis(dice.random_range(BETWEEN_MS)),
                lasts: Duration::from_millis(dice.random_range(kind.lasts_ms())),
            });
        }
    }
    planned.truncate(faults as usize);
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_kinds_places_and_times_and_another_one_gives_others() {
        let all = plan(&FaultKind::ALL, 40, 7);
        assert_eq!(all, plan(&FaultKind::ALL, 40, 7));
        assert_ne!(all, plan(&FaultKind::ALL, 40, 8));
        let mut first: Vec<_> = all[..FaultKind::ALL.len()].iter().map(|fault| fault.kind).collect();
        first.sort_unstable();
        assert_eq!(first, FaultKind::ALL, "each kind comes once before any comes twice");
    }

    #[test]
    fn a_cluster_without_namespaces_has_no_partitions_and_says_why() {
        let abilities = ClusterAbilities {
            can_cut: false,
            has_standby: true,
            has_nats: true,
            has_small_disk: true,
            has_clock: true,
            has_older: true,
        };
        let refused: Vec<_> =
            FaultKind::ALL.into_iter().filter(|kind| kind.obstacle(&abilities).is_some()).collect();
        let cuts = [
            FaultKind::NodeFromDatabase,
            FaultKind::NodeFromQueue,
            FaultKind::NodeFromQueueLeader,
            FaultKind::NodeFromStandby,
            FaultKind::NodeFromPushServices,
            FaultKind::DatabaseLoss,
            FaultKind::StandbyPartition,
            FaultKind::QueuePartition,
            FaultKind::QueueFollowerPartition,
            FaultKind::QueuePairPartition,
        ];
        assert_eq!(refused, cuts);
        assert_eq!("node-kill".parse(), Ok(FaultKind::NodeKill));
        assert!("flood".parse::<FaultKind>().is_err());
    }

    #[test]
    fn each_pair_of_nats_servers_is_cut_and_a_follower_alone_leaves_the_leader_with_the_other() {
        let cut = |kind, place, leader| {
            let at_once = Duration::ZERO;
            PlannedFault { kind, place, before: at_once, lasts: at_once }.queue_cut(3, leader)
        };
        assert_eq!(cut(FaultKind::QueuePartition, 5, 1), (1, vec![2, 0]));
        assert_eq!(cut(FaultKind::QueueFollowerPartition, 0, 1), (2, vec![0, 1]));
        assert_eq!(cut(FaultKind::QueueFollowerPartition, 1, 1), (0, vec![1, 2]));
        assert_eq!(cut(FaultKind::QueuePairPartition, 0, 2), (2, vec![0]));
        assert_eq!(cut(FaultKind::QueuePairPartition, 1, 2), (2, vec![1]));
    }
}
