-- Servers of two versions over one database: which programs may use it, and which ones do. A program that knows schema 5 goes on.
ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS usable_by INTEGER NOT NULL DEFAULT 5; -- the oldest schema that suffices to know
ALTER TABLE nodes ADD COLUMN IF NOT EXISTS schema_version INTEGER NOT NULL DEFAULT 5; -- what the server knows
