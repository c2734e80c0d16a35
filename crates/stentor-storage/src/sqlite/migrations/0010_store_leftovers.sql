-- What is gone for everybody and whose rows are still to be removed, a few in each transaction. Kinds: 1 a topic, 2 a group,
-- 3 a person, 4 an app, 5 a person's devices in a group (`no` the group, `other` the person) that are to follow whether the
-- person is in it, from `cursor` on, 6 an app's devices at a provider (`no` the fleet, `other` the app, `cursor` the provider).
CREATE TABLE leftovers (
    kind INTEGER NOT NULL,
    no INTEGER NOT NULL,
    other INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (kind, no, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX leftovers_by_person ON leftovers (other) WHERE kind = 5;

-- A person in a group, or no longer, may have any number of devices: no trigger, they follow as leftovers.
DROP TRIGGER group_user_devices_of_user;
DROP TRIGGER group_user_devices_without_user;
DROP TRIGGER group_user_devices_without_device;
CREATE TRIGGER group_user_devices_without_device AFTER DELETE ON user_devices BEGIN
    DELETE FROM group_user_devices WHERE key = OLD.key AND user = OLD.user
        AND grp IN (SELECT grp FROM group_users WHERE user = OLD.user
            UNION SELECT no FROM leftovers WHERE kind = 5 AND other = OLD.user);
END;

-- Campaigns that were canceled, or stopped at a provider, while more was queued than one transaction ends.
CREATE INDEX campaigns_winding_up ON campaigns (id) WHERE state = 3 AND ended_at IS NULL;
CREATE INDEX ledgers_winding_up ON ledgers (campaign) WHERE stop_reason IS NOT NULL AND queued > 0;

-- Devices known only by a message to their token.
CREATE INDEX devices_unlisted ON devices (key) WHERE listed = 0;
