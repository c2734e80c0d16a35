-- Where apps want what their devices send; the address is in the sealed secret.
CREATE TABLE upstream_webhooks (
    app BIGINT PRIMARY KEY,
    secret TEXT NOT NULL,
    updated_at BIGINT NOT NULL
);
