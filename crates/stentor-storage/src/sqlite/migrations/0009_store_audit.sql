-- Who changed what. Entries of one app and kind (0 by root, 1 by a key, 2 refused) are counted by their place, so that the
-- oldest go when there are too many. App -1 stands for none; an app's entries stay when it goes.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    app INTEGER NOT NULL,
    place INTEGER NOT NULL,
    key INTEGER,
    key_name TEXT,
    action INTEGER NOT NULL,
    thing TEXT NOT NULL,
    detail TEXT NOT NULL,
    address TEXT,
    request_id TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX audit_by_place ON audit (app, kind, place);
CREATE INDEX audit_by_app ON audit (app, id);
CREATE INDEX audit_by_age ON audit (at);
