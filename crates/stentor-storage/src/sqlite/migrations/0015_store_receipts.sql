-- Until when devices may confirm deliveries of this settled chunk: the expiry of its message, or nothing when none awaits it.
ALTER TABLE chunks ADD COLUMN receipts_until INTEGER;
CREATE INDEX chunks_pending ON chunks (fleet, level, last, message) WHERE receipts_until IS NOT NULL;
CREATE INDEX chunks_receipts_until ON chunks (receipts_until) WHERE receipts_until IS NOT NULL;
