-- What callers store beyond single turns: responses, conversations, for each item the response that holds it, and for each
-- idempotency key of a background response that response.
-- content is sealed under the master key, and there is no row without one. key is a keyed hash of the id, 128 bits.
-- used numbers the uses of one caller's rows that were written down (one that prolongs a row by too little is not): what the
-- caller has not used for longest has the smallest.
CREATE TABLE stored (
    kind     TEXT NOT NULL CHECK (kind IN ('response', 'conversation', 'item', 'retry')),
    caller   TEXT NOT NULL,
    key      BLOB NOT NULL CHECK (length(key) = 16),
    made_ms  INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    used     INTEGER NOT NULL,
    content  BLOB NOT NULL,
    UNIQUE (kind, caller, key)
) STRICT;

CREATE INDEX stored_until ON stored (until_ms);
CREATE INDEX stored_used ON stored (caller, used);

-- Each caller's share, kept by the triggers alone. The caller '' is the sum over all; no caller has that name.
CREATE TABLE stored_share (
    caller TEXT PRIMARY KEY NOT NULL,
    things INTEGER NOT NULL,
    bytes  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX stored_share_things ON stored_share (things);
CREATE INDEX stored_share_bytes ON stored_share (bytes);

INSERT INTO stored_share (caller, things, bytes) VALUES ('', 0, 0);

CREATE TRIGGER stored_came AFTER INSERT ON stored
BEGIN
    INSERT INTO stored_share (caller, things, bytes) VALUES (NEW.caller, 1, length(NEW.content))
    ON CONFLICT (caller) DO UPDATE SET things = things + 1, bytes = bytes + excluded.bytes;
    UPDATE stored_share SET things = things + 1, bytes = bytes + length(NEW.content) WHERE caller = '';
END;

CREATE TRIGGER stored_went AFTER DELETE ON stored
BEGIN
    UPDATE stored_share SET things = things - 1, bytes = bytes - length(OLD.content) WHERE caller IN (OLD.caller, '');
    DELETE FROM stored_share WHERE caller = OLD.caller AND things <= 0 AND caller <> '';
END;
