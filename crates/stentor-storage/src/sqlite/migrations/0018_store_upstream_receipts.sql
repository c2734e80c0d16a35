-- What an app is told: 0 what a device says, 1 that a device has confirmed a message of a sender who wants to know.
ALTER TABLE upstream ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
DROP INDEX upstream_by_key;
CREATE UNIQUE INDEX upstream_by_key ON upstream (device, kind, key);
