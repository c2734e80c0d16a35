-- Finds the retired devices among many, for lists.
CREATE INDEX IF NOT EXISTS devices_retired ON devices (key) WHERE retired_at IS NOT NULL;
