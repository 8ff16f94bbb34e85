-- Conversations that upstreams keep, by the history that goes on from them. A row is in no turn: the entry of an attempt
-- that goes on with a mutable one takes its row in the same transaction, so that nobody goes on with what a dead process
-- had sent.
-- content holds the handle, sealed under the master key; there is no row without one. key is a keyed hash, 128 bits.
CREATE TABLE upstream_conversations (
    caller   TEXT NOT NULL,
    key      BLOB NOT NULL CHECK (length(key) = 16),
    until_ms INTEGER NOT NULL,
    content  BLOB NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX upstream_conversations_until ON upstream_conversations (until_ms);
