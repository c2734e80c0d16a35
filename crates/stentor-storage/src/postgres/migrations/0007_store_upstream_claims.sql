-- Which server hands a message of a device over: none, or one that is gone, leaves it to all.
ALTER TABLE upstream ADD COLUMN claimed_by BIGINT; -- an instance in `nodes`
