-- The topic whose new subscribers get the message as its last state, and the message's place among those; most have neither.
ALTER TABLE campaigns ADD COLUMN retained_topic TEXT;
ALTER TABLE campaigns ADD COLUMN retained_place INTEGER;
CREATE INDEX campaigns_retained ON campaigns (app, retained_topic, retained_place, id, expires_at) WHERE retained_topic IS NOT NULL;
