-- The newest token hashes, until they are moved to token_hashes stretch by stretch: hashes come in no order, and a batch of
-- them that is written into a small table writes few pages.
CREATE TABLE token_hashes_fresh (
    hash INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (hash, key)
) STRICT, WITHOUT ROWID;

-- How many there are, and from which hash on the next stretch is moved.
CREATE TABLE token_hashes_fresh_count (
    count INTEGER NOT NULL,
    moved_from INTEGER NOT NULL
) STRICT;
INSERT INTO token_hashes_fresh_count (count, moved_from) VALUES (0, -9223372036854775808);
