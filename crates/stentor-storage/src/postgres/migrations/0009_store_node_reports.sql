-- What each server says of itself, for whoever asks another one.
ALTER TABLE nodes ADD COLUMN IF NOT EXISTS host TEXT NOT NULL DEFAULT ''; -- the name of its machine
ALTER TABLE nodes ADD COLUMN IF NOT EXISTS roles TEXT NOT NULL DEFAULT ''; -- their names, a comma between them
ALTER TABLE nodes ADD COLUMN IF NOT EXISTS version TEXT NOT NULL DEFAULT '';
CREATE TABLE IF NOT EXISTS parked_lanes ( -- which lanes rest at which server
    instance BIGINT NOT NULL REFERENCES nodes (instance) ON DELETE CASCADE,
    app BIGINT NOT NULL,
    provider SMALLINT NOT NULL,
    reason SMALLINT NOT NULL,
    until BIGINT, -- none until the credential changes or a probe passes
    detail TEXT NOT NULL,
    PRIMARY KEY (instance, app, provider)
);
