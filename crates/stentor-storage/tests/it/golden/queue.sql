CREATE TABLE lanes (
    no INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    provider INTEGER NOT NULL,
    class INTEGER NOT NULL,
    UNIQUE (app, provider, class)
) STRICT;
CREATE TABLE leases (last INTEGER NOT NULL) STRICT;
CREATE TABLE tickets (
    chunk INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    lease INTEGER, -- which lease holds it
    lease_until INTEGER
) STRICT;
CREATE INDEX tickets_leased ON tickets (lane, lease_until) WHERE lease IS NOT NULL;
CREATE INDEX tickets_waiting ON tickets (lane, due_at, chunk) WHERE lease IS NULL;
