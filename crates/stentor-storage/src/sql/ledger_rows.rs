//! The reads and writes of the ledger's rows that are the same in both engines.

/// Implements them within the `LedgerRows` of an engine's `Rows`. These name the connection for reading rows that the transaction may have
/// changed (`up_to_date`), the one for changing rows (`changing`), and the lock on devices (`lock_registry`).
macro_rules! shared_ledger_rows {
    () => {
        type Error = SqlError;
        type Chunk = ChunkRow;

        const ENDED_AT_ONCE_MAX_COUNT: usize = 64;

        fn is_unreadable(fault: &SqlError) -> bool {
            fault.is_damage()
        }

        fn note_damage(&self, row: Damaged, fault: &SqlError) {
            match row {
                Damaged::Chunk(id) => {
                    $crate::sql::note_damage(self.connection, "chunks", int(id.raw()), fault)
                }
                Damaged::Campaign(id) => {
                    $crate::sql::note_damage(self.connection, "campaigns", int(id.raw()), fault)
                }
            }
        }

        fn queued(&self, campaign: CampaignId, only: Option<ProviderKind>, max: usize) -> Done<Vec<ChunkId>> {
            chunks::queued(self.up_to_date()?, campaign, only, max)
        }

        fn leased(&self) -> Done<Vec<ChunkId>> {
            chunks::leased(self.up_to_date()?)
        }

        fn is_leased_by(&self, chunk: ChunkId, instance: u64) -> Done<bool> {
            chunks::is_leased_by(self.up_to_date()?, chunk, instance)
        }

        fn copy_lease(&mut self, chunk: ChunkId, epoch: u32, other: ChunkId) -> Done<()> {
            chunks::copy_lease(self.up_to_date()?, chunk, epoch, other)
        }

        fn write_quarantined(&mut self, chunk: ChunkId, now: Timestamp) -> Done<()> {
            chunks::write_quarantined(self.changing()?, chunk, now)
        }

        fn complete_books(&mut self, campaign: CampaignId) -> Done<()> {
            books::complete(self.changing()?, campaign)
        }

        fn orphaned_books(&self, of: OrphanedBooks) -> Done<Vec<(CampaignId, Books)>> {
            match of {
                OrphanedBooks::OfCampaign(campaign, provider) => {
                    books::orphaned(self.up_to_date()?, int(campaign.raw()), provider)
                }
                OrphanedBooks::OfChunk(chunk) => books::orphaned_of_chunk(self.up_to_date()?, chunk),
            }
        }

        fn campaign(&self, app: AppId, id: CampaignId) -> Done<Option<(Campaign, bool)>> {
            campaigns::find(self.up_to_date()?, app, id)
        }

        fn expired_campaigns(
            &self,
            now: Timestamp,
            is_late: impl Fn(Timestamp, Timestamp) -> bool,
            max: usize,
        ) -> Done<Vec<CampaignId>> {
            campaigns::expired(self.up_to_date()?, now, is_late, max)
        }

        fn write_state(&mut self, id: CampaignId, state: CampaignState) -> Done<()> {
            campaigns::write_state(self.changing()?, id, state)
        }

        fn force_state(&mut self, id: CampaignId, state: CampaignState) -> Done<()> {
            campaigns::force_state(self.changing()?, id, state)
        }

        fn add_producer(&mut self, app: AppId, campaign: CampaignId, provider: ProviderKind) -> Done<()> {
            producers::add(self.changing()?, campaign, self.fleet(app, provider)?)
        }

        fn advance_producer(&mut self, campaign: CampaignId, lane: Lane, cursor: DeviceId) -> Done<()> {
            producers::advance(self.changing()?, campaign, self.fleet(lane.app, lane.provider)?, cursor)
        }

        fn end_producers(&mut self, campaign: CampaignId, only: Option<ProviderKind>) -> Done<()> {
            producers::end(self.changing()?, campaign, only)
        }

        fn token_since(&self, chunk: &ChunkRow, device: DeviceId) -> Done<Option<Timestamp>> {
            let Some(key) = chunk.fleet.key(device) else { return Ok(None) };
            one(self.connection, "SELECT token_since FROM devices WHERE key = ?1", [key], |row| time(row, 0))
        }

        fn retire(
            &mut self,
            chunk: &ChunkRow,
            device: DeviceId,
            reason: Reason,
            since: Timestamp,
            now: Timestamp,
        ) -> Done<()> {
            let Some(key) = chunk.fleet.key(device) else { return Ok(()) };
            self.lock_registry();
            devices::retire(self.connection, chunk.fleet, key, reason, since, now)
        }

        fn move_token(
            &mut self,
            chunk: &ChunkRow,
            device: DeviceId,
            token: &PushToken,
            now: Timestamp,
        ) -> Done<bool> {
            let Some(key) = chunk.fleet.key(device) else { return Ok(true) };
            self.lock_registry();
            devices::move_token(self.connection, chunk.fleet, key, token, now)
        }
    };
}

pub(crate) use shared_ledger_rows;
