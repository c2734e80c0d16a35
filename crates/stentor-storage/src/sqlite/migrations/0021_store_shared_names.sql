-- The names that PostgreSQL has: `user` is a word of its language.
ALTER TABLE devices RENAME COLUMN user TO owner;
ALTER TABLE user_devices RENAME COLUMN user TO owner;
ALTER TABLE group_users RENAME COLUMN user TO owner;
ALTER TABLE group_user_devices RENAME COLUMN user TO owner;

-- The topics of a device, in an index in place of a table that statements had to keep in step.
CREATE INDEX subscriptions_by_device ON subscriptions (key, topic);
DROP TABLE device_topics;

-- An index of part of a table serves a statement that has its condition word by word.
DROP INDEX devices_unlisted;
CREATE INDEX devices_unlisted ON devices (key) WHERE NOT listed;
