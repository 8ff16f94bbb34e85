-- What attempts cost, what each caller has spent on a day, and the answers that outlive their turn.

-- The key's labels, a JSON object of strings. Costs are billionths of a US dollar; null: the model has no price.
ALTER TABLE ledger ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
-- What an attempt is taken to have made, and both to have cost, if its end is never known.
ALTER TABLE ledger ADD COLUMN estimated_output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN estimated_cost INTEGER;
ALTER TABLE ledger ADD COLUMN cost INTEGER;

-- What a caller's attempts of a day cost, for its budgets; the day is that of the attempt's opening, counted from 1970,
-- UTC. It is kept by the trigger alone, in the transaction that closes the entry, and so agrees with the ledger at any
-- instant. It outlives the entries: pruning these changes nothing here. A model without a price adds tokens alone.
-- One attempt counts for at most 2^59 tokens of a kind and 2^61 of money, and a day for twice 2^62: a number that a
-- provider made up stops the sum instead of the closing.
CREATE TABLE spend (
    day      INTEGER NOT NULL,
    caller   TEXT NOT NULL,
    tokens   INTEGER NOT NULL,
    nano_usd INTEGER NOT NULL,
    PRIMARY KEY (day, caller)
) STRICT, WITHOUT ROWID;

-- An attempt, not an answer that was given again: those have no upstream. An entry that is written late is opened and
-- closed as any other.
CREATE TRIGGER ledger_closed AFTER UPDATE OF outcome ON ledger
WHEN OLD.outcome IS NULL AND NEW.outcome IS NOT NULL AND NEW.upstream <> ''
BEGIN
    INSERT INTO spend (day, caller, tokens, nano_usd) VALUES (
        NEW.opened_ms / 86400000,
        NEW.caller,
        min(NEW.input, 1 << 59) + min(NEW.cache_read, 1 << 59) + min(NEW.cache_write, 1 << 59)
            + min(NEW.output, 1 << 59),
        min(coalesce(NEW.cost, 0), 1 << 61))
    ON CONFLICT (day, caller) DO UPDATE SET
        tokens = min(tokens, 1 << 62) + excluded.tokens,
        nano_usd = min(nano_usd, 1 << 62) + excluded.nano_usd;
END;

-- The days before this version: tokens, for there was no money then.
INSERT INTO spend (day, caller, tokens, nano_usd)
SELECT opened_ms / 86400000, caller,
    min(sum(min(input, 1 << 48) + min(cache_read, 1 << 48) + min(cache_write, 1 << 48) + min(output, 1 << 48)), 1 << 62),
    0
FROM ledger WHERE outcome IS NOT NULL GROUP BY 1, 2;

-- Answers that outlive their turn: the response cache, answers that have not arrived, and those under idempotency keys.
-- content is sealed under the master key, and there is no row without one. key is a keyed hash of 128 bits.
CREATE TABLE kept (
    kind     TEXT NOT NULL CHECK (kind IN ('cache', 'held', 'idempotent')),
    caller   TEXT NOT NULL,
    key      BLOB NOT NULL CHECK (length(key) = 16),
    kept_ms  INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    content  BLOB NOT NULL,
    UNIQUE (kind, caller, key)
) STRICT;

CREATE INDEX kept_until ON kept (until_ms);
