-- Accepting a message only appends it: whatever is due begins by app, so that one app's stands in no other's way however
-- much it is.
DROP INDEX campaigns_scheduled_by_app;
CREATE INDEX campaigns_due_by_app ON campaigns (app, due_at) WHERE state = 0;
