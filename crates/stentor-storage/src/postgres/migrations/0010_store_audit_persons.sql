-- Which person made a change: the subject at the identity provider, and the name for readers.
ALTER TABLE audit ADD COLUMN IF NOT EXISTS person TEXT;
ALTER TABLE audit ADD COLUMN IF NOT EXISTS person_name TEXT;
