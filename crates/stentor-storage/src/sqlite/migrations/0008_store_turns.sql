-- What is due by app, so that one app's stands in no other's way however much it is. Messages due when they were made are
-- begun at once, and those of a rush in the order in which they came.
CREATE INDEX schedules_by_app_and_tick ON schedules (app, state, next_due);
CREATE INDEX campaigns_scheduled_by_app ON campaigns (app, due_at) WHERE state = 0 AND due_at <> created_at;
