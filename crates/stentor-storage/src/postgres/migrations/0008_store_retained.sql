-- The topic whose new subscribers get the message as its last state, and the message's place among those; most have neither.
ALTER TABLE campaigns ADD COLUMN IF NOT EXISTS retained_topic TEXT COLLATE "C";
ALTER TABLE campaigns ADD COLUMN IF NOT EXISTS retained_place BIGINT;
CREATE INDEX IF NOT EXISTS campaigns_retained ON campaigns (app, retained_topic, retained_place, id, expires_at)
    WHERE retained_topic IS NOT NULL;
