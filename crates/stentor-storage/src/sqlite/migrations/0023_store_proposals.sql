-- Messages that wait for an approval. Expired ones go with the next proposal of their app.
CREATE TABLE proposals (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    key INTEGER, -- the author, as in audit
    person TEXT,
    person_name TEXT,
    spec TEXT NOT NULL,
    send_at INTEGER,
    exact INTEGER NOT NULL,
    device_count INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    message INTEGER
) STRICT;
CREATE INDEX proposals_by_app ON proposals (app, id);
