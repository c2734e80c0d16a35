-- Finds the retired devices among many, for lists.
CREATE INDEX devices_retired ON devices (key) WHERE retired_at IS NOT NULL;
