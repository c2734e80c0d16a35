-- What is kept of a device of the gateway goes with it, and what earlier versions left of removed ones goes now.
CREATE INDEX channels_by_device ON channels (device);
CREATE INDEX replaced_tokens_by_device ON replaced_tokens (device);
DELETE FROM channels WHERE device NOT IN (SELECT key & 1099511627775 FROM devices);
DELETE FROM offered_tokens WHERE device NOT IN (SELECT key & 1099511627775 FROM devices);
DELETE FROM replaced_tokens WHERE device NOT IN (SELECT key & 1099511627775 FROM devices);
