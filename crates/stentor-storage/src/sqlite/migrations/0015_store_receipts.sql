-- Until when devices may confirm deliveries of this settled chunk: the expiry of its message, or nothing when none awaits it.
ALTER TABLE chunks ADD COLUMN receipts_until INTEGER;
CREATE INDEX chunks_pending ON chunks (fleet, level, last, message) WHERE receipts_until IS NOT NULL;
CREATE INDEX chunks_receipts_until ON chunks (receipts_until) WHERE receipts_until IS NOT NULL;

-- Messages of devices to their apps. The key is the device's own name for it.
CREATE TABLE upstream (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    device INTEGER NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    settled_at INTEGER, -- when it was taken over
    dead_reason TEXT    -- why nobody takes it over
) STRICT;
CREATE UNIQUE INDEX upstream_by_key ON upstream (device, key);
CREATE INDEX upstream_waiting ON upstream (app, id) WHERE settled_at IS NULL AND dead_reason IS NULL;
CREATE INDEX upstream_waiting_of_device ON upstream (device) WHERE settled_at IS NULL AND dead_reason IS NULL;
CREATE INDEX upstream_dead ON upstream (app, id) WHERE dead_reason IS NOT NULL;
CREATE INDEX upstream_by_expiry ON upstream (expires_at);

-- Registrations of a program that holds several through one connection.
CREATE TABLE channels (
    agent TEXT NOT NULL,
    name TEXT NOT NULL,
    app INTEGER NOT NULL,
    device INTEGER NOT NULL,
    PRIMARY KEY (agent, name)
) STRICT, WITHOUT ROWID;

-- Tokens that devices had before.
CREATE TABLE replaced_tokens (
    app INTEGER NOT NULL,
    token TEXT NOT NULL,
    device INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    PRIMARY KEY (app, token)
) STRICT, WITHOUT ROWID;
