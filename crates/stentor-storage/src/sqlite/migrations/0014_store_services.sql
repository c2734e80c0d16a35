-- The registry: services that are published by app. What has expired is not found and goes with the next publishing.
CREATE TABLE services (
    app INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    address TEXT NOT NULL,
    description TEXT,
    published_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (app, name)
) STRICT, WITHOUT ROWID;
