-- Tokens that devices were offered and have not used yet: until its device uses it the former one is the device's.
CREATE TABLE offered_tokens (
    device INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    token TEXT NOT NULL,
    former TEXT NOT NULL,
    offered_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX offered_tokens_by_token ON offered_tokens (app, token);
