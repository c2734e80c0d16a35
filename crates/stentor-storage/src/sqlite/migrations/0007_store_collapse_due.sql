-- Messages with a collapse key that were accepted before they were due: each replaces what was due before it, also what was
-- accepted after it.
CREATE INDEX campaigns_by_collapse_due ON campaigns (app, collapse_key, due_at)
    WHERE collapse_key IS NOT NULL AND due_at > created_at;
