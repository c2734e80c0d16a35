-- Sessions of the web console that ended before their time, until they expire.
CREATE TABLE IF NOT EXISTS ended_sessions (
    number BIGINT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS ended_sessions_by_expiry ON ended_sessions (expires_at);
