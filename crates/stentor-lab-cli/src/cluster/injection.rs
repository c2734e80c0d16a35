//! Injection of faults: when this returns, the fault is over and every process is back.

use super::fault::{FaultKind, PlannedFault};
use super::network::ClusterHost;
use super::queue_servers::SERVERS_COUNT;
use super::site::{ClusterApp, ClusterNode, ClusterSite, SILENCE_MAX_MS};
use super::writing;
use std::time::{Duration, Instant};
use stentor_stage::devices::StagedService;

/// Interval at which a disk is filled again, to take the space that the database frees.
const FILL_EVERY: Duration = Duration::from_millis(200);
/// Longer than the others wait for a heartbeat.
const ABSENCE: Duration = Duration::from_millis(SILENCE_MAX_MS as u64 + 1_000);
/// Offset of a server's clock, and that of the database's.
const CLOCK_OFFSET_SECONDS: i64 = 3_600;
const DATABASE_CLOCK_OFFSET_SECONDS: u32 = 300;
/// Time until the processes follow a changed clock, and all servers have read the database's clock.
const CLOCK_FOLLOWED_WITHIN: Duration = Duration::from_millis(SILENCE_MAX_MS as u64);

impl ClusterSite {
    /// Injects one fault.
    pub(crate) async fn inject(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        match fault.kind {
            FaultKind::NodeKill | FaultKind::NodeAbsence => self.kill_node(fault).await,
            FaultKind::NodePause => {
                self.pause_node(fault).await;
                Ok(())
            }
            FaultKind::NodeClock => self.shift_clock(fault).await,
            FaultKind::NodeClockDeath => self.kill_node_with_fast_clock(fault).await,
            FaultKind::NodeVersion => self.exchange_version(fault).await,
            FaultKind::NodeFromDatabase
            | FaultKind::NodeFromQueue
            | FaultKind::NodeFromQueueLeader
            | FaultKind::NodeFromPushServices => self.cut_node_off(fault).await,
            FaultKind::NodeFromStandby => self.start_without_standby(fault).await,
            FaultKind::DatabaseKill | FaultKind::StandbyKill => self.kill_database(fault).await,
            FaultKind::DatabasePromotion => self.promote().await,
            FaultKind::DatabaseLoss => self.lose_primary().await,
            FaultKind::StandbyPartition => self.cut_standby_off(fault).await,
            FaultKind::DatabaseClock => self.shift_database_clock(fault).await,
            FaultKind::DatabaseDiskFull => self.fill_disk(fault).await,
            FaultKind::QueueKill | FaultKind::QueueWipe => self.kill_queue(fault).await,
            FaultKind::QueuePartition | FaultKind::QueueFollowerPartition | FaultKind::QueuePairPartition => {
                self.cut_queue(fault).await
            }
            FaultKind::QueueDeletion => self.delete_stream().await,
            FaultKind::PushServiceKill => {
                self.emulators.of_mut(StagedService::USUAL[fault.place % 2])?.kill_and_restart().await
            }
        }
    }

    fn node(&mut self, fault: PlannedFault) -> &mut ClusterNode {
        // Only a consumer can be cut off from the push services.
        let is_meant =
            |node: &ClusterNode| fault.kind != FaultKind::NodeFromPushServices || node.roles.has_consumer();
        let meant: Vec<_> = (0..self.nodes.len()).filter(|place| is_meant(&self.nodes[*place])).collect();
        &mut self.nodes[meant[fault.place % meant.len()]]
    }

    async fn kill_node(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let server = &mut self.node(fault).server;
        server.kill();
        if fault.kind == FaultKind::NodeAbsence {
            tokio::time::sleep(fault.lasts).await;
        }
        server.start_again().await
    }

    async fn pause_node(&mut self, fault: PlannedFault) {
        let server = &mut self.node(fault).server;
        server.process().iter().for_each(|process| process.pause());
        tokio::time::sleep(fault.lasts).await;
        server.process().iter().for_each(|process| process.resume());
    }

    async fn shift_clock(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let Some(clock) = &self.node(fault).clock else { return Ok(()) };
        let sign = if fault.place.is_multiple_of(2) { 1 } else { -1 };
        clock.shift(sign * CLOCK_OFFSET_SECONDS)?;
        tokio::time::sleep(fault.lasts).await;
        clock.shift(0)
    }

    async fn shift_database_clock(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let state = self.state.clone();
        let Some(clock) = self.database.primary().clock() else { return Ok(()) };
        let is_fast = fault.place.is_multiple_of(2);
        let sign = if is_fast { 1 } else { -1 };
        state.note_clock_change();
        clock.shift(sign * i64::from(DATABASE_CLOCK_OFFSET_SECONDS))?;
        tokio::time::sleep(fault.lasts).await;
        clock.shift(0)?;
        tokio::time::sleep(CLOCK_FOLLOWED_WITHIN).await;
        state.note_clock_change();
        if is_fast {
            state.note_fast_clock(Duration::from_secs(u64::from(DATABASE_CLOCK_OFFSET_SECONDS)));
        }
        self.database.until_in_sync().await
    }

    /// Kills a server while its clock is ahead: the others take over the work that it postponed by that clock. The server is of the present
    /// version, because older versions did not follow the database's clock.
    async fn kill_node_with_fast_clock(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let mut nodes: Vec<_> =
            self.nodes.iter_mut().filter(|node| !node.server.is_of_another_program()).collect();
        let place = fault.place % nodes.len();
        let node = &mut nodes[place];
        let Some(clock) = &node.clock else { return Ok(()) };
        clock.shift(CLOCK_OFFSET_SECONDS)?;
        tokio::time::sleep(fault.lasts).await;
        node.server.kill();
        clock.shift(0)?;
        tokio::time::sleep(ABSENCE).await;
        node.server.start_again().await
    }

    /// One step of a rolling upgrade or downgrade: at most one server is of the older version.
    async fn exchange_version(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let older = self.older.clone();
        match self.nodes.iter_mut().find(|node| node.server.is_of_another_program()) {
            Some(node) => node.server.exchange(None).await,
            None => self.node(fault).server.exchange(older).await,
        }
    }

    async fn cut_node_off(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let from: Vec<ClusterHost> = match (fault.kind, &self.queue) {
            (FaultKind::NodeFromDatabase, _) => vec![self.database.primary_host()],
            (FaultKind::NodeFromQueue, Some(queue)) => {
                (0..SERVERS_COUNT).map(|place| queue.host(place).clone()).collect()
            }
            (FaultKind::NodeFromQueueLeader, Some(queue)) => vec![queue.host(queue.leader().await).clone()],
            _ => vec![self.push_services.clone()],
        };
        let node = self.node(fault).host.clone();
        cut(&node, &from, fault.lasts).await
    }

    /// Kills a server that cannot reach the standby, so that it has to find the primary without it.
    async fn start_without_standby(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let Some(standby) = self.database.standby_host() else { return Ok(()) };
        let node = self.node(fault);
        node.host.cut(&standby)?;
        node.server.kill();
        let started = node.server.start_again().await;
        tokio::time::sleep(fault.lasts).await;
        node.host.mend(&standby)?;
        started
    }

    async fn kill_database(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        if fault.kind == FaultKind::StandbyKill {
            self.database.kill_standby();
        } else {
            self.database.kill_primary();
        }
        tokio::time::sleep(fault.lasts).await;
        self.database.start_again().await?;
        self.database.until_in_sync().await
    }

    async fn promote(&mut self) -> anyhow::Result<()> {
        self.database.until_in_sync().await?;
        self.database.promote()?;
        self.database.renew_standby()?;
        self.database.until_in_sync().await
    }

    /// The primary dies while unreachable: no server is notified, and each has to detect it.
    async fn lose_primary(&mut self) -> anyhow::Result<()> {
        self.database.until_in_sync().await?;
        let lost = self.database.primary_host();
        for node in &self.nodes {
            node.host.cut(&lost)?;
        }
        self.database.promote()?;
        // The new primary waits for a standby with every commit, like the old one.
        self.database.renew_standby()?;
        let found = writing::until_written(&self.clients(ClusterApp::Beside)?).await;
        for node in &self.nodes {
            node.host.mend(&lost)?;
        }
        found?;
        self.database.until_in_sync().await
    }

    async fn cut_standby_off(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let Some(standby) = self.database.standby_host() else { return Ok(()) };
        cut(&self.database.primary_host(), &[standby], fault.lasts).await?;
        self.database.until_in_sync().await
    }

    async fn fill_disk(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < fault.lasts {
            if let Some(disk) = self.database.primary().disk() {
                disk.fill()?;
            }
            tokio::time::sleep(FILL_EVERY).await;
        }
        if let Some(disk) = self.database.primary().disk() {
            disk.empty()?;
        }
        self.database.start_again().await?;
        self.database.until_in_sync().await
    }

    async fn kill_queue(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let Some(queue) = &mut self.queue else { return Ok(()) };
        if fault.kind == FaultKind::QueueWipe {
            queue.wipe()?;
        } else {
            let leader = queue.leader().await;
            queue.kill(leader);
        }
        tokio::time::sleep(fault.lasts).await;
        queue.start_again()
    }

    /// Cuts nats-servers off from each other, and waits until all have the contents of the stream.
    async fn cut_queue(&mut self, fault: PlannedFault) -> anyhow::Result<()> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let (one, others) = fault.queue_cut(SERVERS_COUNT, queue.leader().await);
        let others: Vec<ClusterHost> = others.into_iter().map(|place| queue.host(place).clone()).collect();
        cut(queue.host(one), &others, fault.lasts).await?;
        queue.until_whole().await
    }

    async fn delete_stream(&mut self) -> anyhow::Result<()> {
        match &self.queue {
            Some(queue) => queue.delete_stream().await,
            None => Ok(()),
        }
    }
}

/// Cuts a host off from others for a while.
async fn cut(one: &ClusterHost, from: &[ClusterHost], span: Duration) -> anyhow::Result<()> {
    from.iter().try_for_each(|other| one.cut(other))?;
    tokio::time::sleep(span).await;
    from.iter().try_for_each(|other| one.mend(other))
}
