-- The devices of a group's people side by side in order of key, so that a producer's step reads its own stretch alone.
-- It follows from group_users and user_devices; the triggers keep it so.
CREATE TABLE group_user_devices (
    grp INTEGER NOT NULL,
    key INTEGER NOT NULL,
    user INTEGER NOT NULL,
    PRIMARY KEY (grp, key, user)
) STRICT, WITHOUT ROWID;
INSERT INTO group_user_devices (grp, key, user)
    SELECT g.grp, u.key, u.user FROM group_users g JOIN user_devices u ON u.user = g.user;
CREATE INDEX group_devices_in_order ON group_devices (grp, key);

CREATE TRIGGER group_user_devices_of_device AFTER INSERT ON user_devices BEGIN
    INSERT OR IGNORE INTO group_user_devices (grp, key, user)
        SELECT grp, NEW.key, NEW.user FROM group_users WHERE user = NEW.user;
END;
CREATE TRIGGER group_user_devices_without_device AFTER DELETE ON user_devices BEGIN
    DELETE FROM group_user_devices WHERE key = OLD.key AND user = OLD.user
        AND grp IN (SELECT grp FROM group_users WHERE user = OLD.user);
END;
CREATE TRIGGER group_user_devices_of_user AFTER INSERT ON group_users BEGIN
    INSERT OR IGNORE INTO group_user_devices (grp, key, user)
        SELECT NEW.grp, key, NEW.user FROM user_devices WHERE user = NEW.user;
END;
CREATE TRIGGER group_user_devices_without_user AFTER DELETE ON group_users BEGIN
    DELETE FROM group_user_devices WHERE grp = OLD.grp AND user = OLD.user
        AND key IN (SELECT key FROM user_devices WHERE user = OLD.user);
END;
