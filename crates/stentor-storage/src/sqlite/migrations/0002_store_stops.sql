-- A campaign is stopped at one provider, no longer as a whole; those stopped before were stopped at each of theirs.
ALTER TABLE ledgers ADD COLUMN stop_reason INTEGER;
ALTER TABLE ledgers ADD COLUMN stop_detail TEXT;
UPDATE ledgers SET (stop_reason, stop_detail) = (SELECT stop_reason, stop_detail FROM campaigns WHERE id = campaign)
    WHERE campaign IN (SELECT id FROM campaigns WHERE state = 4);
