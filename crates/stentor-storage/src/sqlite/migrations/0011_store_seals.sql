-- Credentials are sealed from here on (their secrets are records, no longer JSON). Free space of a file in which they lay in
-- clear may still hold them, until it was written anew.
CREATE TABLE scrubs (
    due INTEGER NOT NULL
) STRICT;
INSERT INTO scrubs (due) SELECT max(value) > 0 FROM sequences;
