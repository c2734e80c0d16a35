-- Messages that wait for an approval. Expired ones go with the next proposal of their app.
CREATE TABLE IF NOT EXISTS proposals (
    id BIGINT PRIMARY KEY,
    app BIGINT NOT NULL,
    key BIGINT, -- the author, as in audit
    person TEXT,
    person_name TEXT,
    spec TEXT NOT NULL,
    send_at BIGINT,
    exact SMALLINT NOT NULL,
    device_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    message BIGINT
);
CREATE INDEX IF NOT EXISTS proposals_by_app ON proposals (app, id);
