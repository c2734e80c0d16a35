-- Servers that use the database together: who is alive, and what each must tell the others.
CREATE TABLE nodes (
    node BIGINT PRIMARY KEY, -- of its data directory
    instance BIGINT NOT NULL UNIQUE, -- of its start
    id_place SMALLINT NOT NULL UNIQUE, -- what its numbers end in
    fires BOOLEAN NOT NULL, -- whether it may fire schedules
    secrets_hash BYTEA NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL -- its last sign of life, by the clock of this database
);
CREATE TABLE node_events (
    no BIGINT PRIMARY KEY,
    origin BIGINT NOT NULL, -- the instance that it comes from
    app BIGINT,
    subject BIGINT,
    until BIGINT,
    kind SMALLINT NOT NULL,
    detail SMALLINT, -- a provider
    reason SMALLINT
);
CREATE TABLE quota_levels (
    app BIGINT NOT NULL,
    provider SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    warm_ms BIGINT NOT NULL,
    urgent_grains BIGINT NOT NULL,
    common_grains BIGINT NOT NULL,
    PRIMARY KEY (app, provider)
) WITH (fillfactor = 50); -- each node that sends rewrites one a second
ALTER TABLE producers ADD COLUMN instance BIGINT; -- who expands it
INSERT INTO sequences (name, value) VALUES ('event', 0), ('place', 0);
