-- The proofs of faults, and the limits of accounts that are added at run time.

-- One row a fault, in the order in which they were noted. Bounded twice: the oldest rows give way beyond a number, and
-- pruning takes those beyond an age. turn and attempt are the ledger's: 16 bytes, and those with the attempt's number.
CREATE TABLE faults (
    id       INTEGER PRIMARY KEY,
    at_ms    INTEGER NOT NULL,
    turn     BLOB NOT NULL CHECK (length(turn) = 16),
    attempt  BLOB CHECK (length(attempt) = 17),
    upstream TEXT,
    account  TEXT,
    model    TEXT NOT NULL,
    fault    TEXT NOT NULL,
    origin   TEXT NOT NULL,
    phase    TEXT NOT NULL,
    status   INTEGER,
    code     TEXT,
    detail   TEXT NOT NULL,
    "offset" INTEGER,
    clock    TEXT,
    wait_ms  INTEGER,
    effect   TEXT NOT NULL,
    until_ms INTEGER,
    CHECK ((upstream IS NULL) = (account IS NULL))
) STRICT;

CREATE INDEX faults_account ON faults (upstream, account, at_ms) WHERE account IS NOT NULL;
CREATE INDEX faults_turn ON faults (turn, at_ms);
CREATE INDEX faults_age ON faults (at_ms);

ALTER TABLE accounts ADD COLUMN limit_group TEXT;
ALTER TABLE accounts ADD COLUMN requests_per_minute INTEGER;
ALTER TABLE accounts ADD COLUMN tokens_per_minute INTEGER;
