-- Token hashes by the page: each row holds up to 404 pairs of 40 bits of a hash and a device's number, in order, and the last
-- hash that it covers; it covers from `first` on. Two tables as before: what is new goes into the small one, and on from
-- there stretch by stretch.
CREATE TABLE token_leaves (
    first INTEGER PRIMARY KEY,
    leaf BLOB NOT NULL
) STRICT;
CREATE TABLE token_leaves_fresh (
    first INTEGER PRIMARY KEY,
    leaf BLOB NOT NULL
) STRICT;
CREATE TABLE token_leaves_fresh_count (
    count INTEGER NOT NULL,
    moved_from INTEGER NOT NULL
) STRICT;
INSERT INTO token_leaves_fresh_count (count, moved_from) VALUES (0, -9223372036854775808);
