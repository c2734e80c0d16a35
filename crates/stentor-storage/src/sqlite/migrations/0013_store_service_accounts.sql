-- Accounts that sign for themselves: of their key pairs only the public halves are kept. Their ids are those of API keys.
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    name TEXT NOT NULL,
    scopes INTEGER NOT NULL,
    public_key BLOB NOT NULL,
    token_uri TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX accounts_by_app ON accounts (app, id);
