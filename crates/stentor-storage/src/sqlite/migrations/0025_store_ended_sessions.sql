-- Sessions of the web console that ended before their time, until they expire.
CREATE TABLE ended_sessions (
    number INTEGER PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ended_sessions_by_expiry ON ended_sessions (expires_at);
