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
CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY,
    app INTEGER,
    name TEXT NOT NULL,
    scopes INTEGER NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_by_app ON api_keys (app, id);
CREATE TABLE apps (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
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
, person TEXT, person_name TEXT) STRICT;
CREATE INDEX audit_by_age ON audit (at);
CREATE INDEX audit_by_app ON audit (app, id);
CREATE UNIQUE INDEX audit_by_place ON audit (app, kind, place);
CREATE TABLE campaigns (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    state INTEGER NOT NULL,
    class INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    collapse_key TEXT,
    as_of INTEGER, -- the largest device id when it was started
    started_at INTEGER,
    ended_at INTEGER,
    stop_reason INTEGER,
    stop_detail TEXT
, retained_topic TEXT, retained_place INTEGER) STRICT;
CREATE INDEX campaigns_by_app ON campaigns (app, id);
CREATE INDEX campaigns_by_collapse_due ON campaigns (app, collapse_key, due_at)
    WHERE collapse_key IS NOT NULL AND due_at > created_at;
CREATE INDEX campaigns_by_collapse_key ON campaigns (app, collapse_key, id) WHERE collapse_key IS NOT NULL;
CREATE INDEX campaigns_due_by_app ON campaigns (app, due_at) WHERE state = 0;
CREATE INDEX campaigns_ended ON campaigns (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX campaigns_open ON campaigns (expires_at) WHERE state IN (1, 2);
CREATE INDEX campaigns_retained ON campaigns (app, retained_topic, retained_place, id, expires_at) WHERE retained_topic IS NOT NULL;
CREATE INDEX campaigns_scheduled ON campaigns (due_at) WHERE state = 0;
CREATE INDEX campaigns_winding_up ON campaigns (id) WHERE state = 3 AND ended_at IS NULL;
CREATE TABLE channels (
    agent TEXT NOT NULL,
    name TEXT NOT NULL,
    app INTEGER NOT NULL,
    device INTEGER NOT NULL,
    PRIMARY KEY (agent, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX channels_by_device ON channels (device);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message INTEGER NOT NULL,
    fleet INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    ambiguous INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER, -- when it was leased or settled
    instance INTEGER,
    lease_until INTEGER,
    parent INTEGER,
    count INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    level INTEGER NOT NULL,
    records BLOB,
    devices BLOB NOT NULL
, receipts_until INTEGER) STRICT;
CREATE INDEX chunks_by_range ON chunks (message, fleet, first, last);
CREATE INDEX chunks_by_span ON chunks (fleet, level, last, message) WHERE parent IS NULL;
CREATE INDEX chunks_leased ON chunks (lease_until) WHERE state = 1;
CREATE INDEX chunks_pending ON chunks (fleet, level, last, message) WHERE receipts_until IS NOT NULL;
CREATE INDEX chunks_queued ON chunks (id) WHERE state = 0;
CREATE INDEX chunks_queued_by_message ON chunks (message, id) WHERE state = 0;
CREATE INDEX chunks_receipts_until ON chunks (receipts_until) WHERE receipts_until IS NOT NULL;
CREATE INDEX chunks_set_aside ON chunks (id) WHERE state = 3;
CREATE TABLE credentials (
    app INTEGER NOT NULL,
    provider INTEGER NOT NULL,
    secret TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (app, provider)
) STRICT, WITHOUT ROWID;
CREATE TABLE device_tags (
    app INTEGER NOT NULL,
    tag TEXT NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (app, tag, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE devices (
    key INTEGER PRIMARY KEY,
    token_since INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    platform INTEGER NOT NULL,
    listed INTEGER NOT NULL,
    retired_at INTEGER,
    retired_reason INTEGER,
    owner INTEGER,
    token TEXT NOT NULL,
    locale TEXT,
    time_zone TEXT,
    tags TEXT -- sorted, with commas between
) STRICT;
CREATE INDEX devices_retired ON devices (key) WHERE retired_at IS NOT NULL;
CREATE INDEX devices_unlisted ON devices (key) WHERE NOT listed;
CREATE TABLE ended_sessions (
    number INTEGER PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ended_sessions_by_expiry ON ended_sessions (expires_at);
CREATE TABLE fleets (
    no INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    provider INTEGER NOT NULL,
    active_count INTEGER NOT NULL, -- listed and not retired
    UNIQUE (app, provider)
) STRICT;
CREATE TABLE group_devices (
    grp INTEGER NOT NULL,
    device INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (grp, device)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_devices_by_key ON group_devices (key);
CREATE INDEX group_devices_in_order ON group_devices (grp, key);
CREATE TABLE group_user_devices (
    grp INTEGER NOT NULL,
    key INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    PRIMARY KEY (grp, key, owner)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER group_user_devices_of_device AFTER INSERT ON user_devices BEGIN
    INSERT OR IGNORE INTO group_user_devices (grp, key, owner)
        SELECT grp, NEW.key, NEW.owner FROM group_users WHERE owner = NEW.owner;
END;
CREATE TRIGGER group_user_devices_without_device AFTER DELETE ON user_devices BEGIN
    DELETE FROM group_user_devices WHERE key = OLD.key AND owner = OLD.owner
        AND grp IN (SELECT grp FROM group_users WHERE owner = OLD.owner
            UNION SELECT no FROM leftovers WHERE kind = 5 AND other = OLD.owner);
END;
CREATE TABLE group_users (
    grp INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    owner INTEGER NOT NULL,
    PRIMARY KEY (grp, external_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_users_by_user ON group_users (owner);
CREATE TABLE groups (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    app INTEGER NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    member_count INTEGER NOT NULL,
    UNIQUE (app, name)
) STRICT;
CREATE TABLE ledgers (
    campaign INTEGER NOT NULL,
    provider INTEGER NOT NULL,
    audience INTEGER NOT NULL,
    audience_complete INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    sending INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    collapsed INTEGER NOT NULL,
    canceled INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    ambiguous INTEGER NOT NULL,
    duplicate_bound INTEGER NOT NULL, stop_reason INTEGER, stop_detail TEXT,
    PRIMARY KEY (campaign, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledgers_winding_up ON ledgers (campaign) WHERE stop_reason IS NOT NULL AND queued > 0;
CREATE TABLE leftovers (
    kind INTEGER NOT NULL,
    no INTEGER NOT NULL,
    other INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (kind, no, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX leftovers_by_person ON leftovers (other) WHERE kind = 5;
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    schedule INTEGER,
    instant INTEGER,
    spec TEXT NOT NULL -- the message record of the core, with its version
) STRICT;
CREATE TABLE occurrences (
    schedule INTEGER NOT NULL,
    instant INTEGER NOT NULL,
    message INTEGER,
    PRIMARY KEY (schedule, instant)
) STRICT, WITHOUT ROWID;
CREATE TABLE offered_tokens (
    device INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    token TEXT NOT NULL,
    former TEXT NOT NULL,
    offered_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX offered_tokens_by_token ON offered_tokens (app, token);
CREATE TABLE producers (
    campaign INTEGER NOT NULL,
    fleet INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (campaign, fleet)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE reasons (
    campaign INTEGER NOT NULL,
    provider INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (campaign, provider, state, reason)
) STRICT, WITHOUT ROWID;
CREATE TABLE replaced_tokens (
    app INTEGER NOT NULL,
    token TEXT NOT NULL,
    device INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    PRIMARY KEY (app, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX replaced_tokens_by_device ON replaced_tokens (device);
CREATE TABLE replies (
    app INTEGER NOT NULL,
    key TEXT NOT NULL,
    request_hash BLOB NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (app, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX replies_by_age ON replies (created_at);
CREATE TABLE schedules (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    name TEXT,
    state INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next_due INTEGER,
    last_fired INTEGER,
    recurrence TEXT NOT NULL,
    spec TEXT NOT NULL
) STRICT;
CREATE INDEX schedules_by_app ON schedules (app, id);
CREATE INDEX schedules_by_app_and_tick ON schedules (app, state, next_due);
CREATE INDEX schedules_due ON schedules (next_due) WHERE state = 0 AND next_due IS NOT NULL;
CREATE TABLE scrubs (
    due INTEGER NOT NULL
) STRICT;
CREATE TABLE sequences (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE subscriptions (
    topic INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (topic, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_by_device ON subscriptions (key, topic);
CREATE TABLE token_leaves (
    first INTEGER PRIMARY KEY,
    leaf BLOB NOT NULL
) STRICT;
CREATE TABLE token_leaves_fresh (
    first INTEGER PRIMARY KEY,
    leaf BLOB NOT NULL
) STRICT;
CREATE TABLE token_leaves_fresh_count (
    count INTEGER NOT NULL,
    moved_from INTEGER NOT NULL
) STRICT;
CREATE TABLE topics (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    app INTEGER NOT NULL,
    name TEXT NOT NULL,
    device_count INTEGER NOT NULL,
    UNIQUE (app, name)
) STRICT;
CREATE TABLE upstream (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    device INTEGER NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    settled_at INTEGER, -- when it was taken over
    dead_reason TEXT    -- why nobody takes it over
, kind INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX upstream_by_expiry ON upstream (expires_at);
CREATE UNIQUE INDEX upstream_by_key ON upstream (device, kind, key);
CREATE INDEX upstream_dead ON upstream (app, id) WHERE dead_reason IS NOT NULL;
CREATE INDEX upstream_waiting ON upstream (app, id) WHERE settled_at IS NULL AND dead_reason IS NULL;
CREATE INDEX upstream_waiting_of_device ON upstream (device) WHERE settled_at IS NULL AND dead_reason IS NULL;
CREATE TABLE upstream_webhooks (
    app INTEGER PRIMARY KEY,
    secret TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE user_devices (
    owner INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE users (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    app INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (app, external_id)
) STRICT;
