-- The first schema. A migration that has been released is never edited: add the next number instead.
-- Times are Unix milliseconds. The runner sets user_version and wraps each file in one transaction.

-- Single values of the database itself: the pepper of key hashes, the salt and check value of the master key.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- One row an attempt. The key is the turn's 128 bits, big-endian, and the attempt's number: it begins with 48 bits of
-- time, so rows are appended and a range of time is a range of keys. outcome is null while the attempt runs.
CREATE TABLE ledger (
    attempt         BLOB PRIMARY KEY NOT NULL CHECK (length(attempt) = 17),
    caller          TEXT NOT NULL,
    upstream        TEXT NOT NULL,
    account         TEXT NOT NULL,
    model           TEXT NOT NULL,
    upstream_model  TEXT NOT NULL,
    dialect         TEXT NOT NULL,
    opened_ms       INTEGER NOT NULL,
    estimated_input INTEGER NOT NULL,
    outcome         TEXT,
    exact           INTEGER,
    input           INTEGER,
    cache_read      INTEGER,
    cache_write     INTEGER,
    output          INTEGER,
    reasoning       INTEGER,
    closed_ms       INTEGER
) STRICT, WITHOUT ROWID;

-- Holds only what runs now, so it stays a page or two; without it a start would read the whole ledger.
CREATE INDEX ledger_open ON ledger (attempt) WHERE outcome IS NULL;

-- Callers' keys. Only hashes; old_hash is valid until old_until_ms, while a rotation overlaps.
CREATE TABLE keys (
    name         TEXT PRIMARY KEY NOT NULL,
    hash         BLOB NOT NULL CHECK (length(hash) = 32),
    old_hash     BLOB CHECK (length(old_hash) = 32),
    old_until_ms INTEGER,
    scopes       TEXT NOT NULL,
    models       TEXT NOT NULL,
    limits       TEXT NOT NULL,
    labels       TEXT NOT NULL,
    shared       INTEGER NOT NULL,
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER,
    revoked_ms   INTEGER
) STRICT, WITHOUT ROWID;

-- Accounts added at run time. The secret is a reference ("env:NAME", "file:PATH") or sealed under the master key.
CREATE TABLE accounts (
    upstream      TEXT NOT NULL,
    account       TEXT NOT NULL,
    secret_ref    TEXT,
    secret_sealed BLOB,
    models        TEXT NOT NULL,
    max_in_flight INTEGER,
    enabled       INTEGER NOT NULL,
    created_ms    INTEGER NOT NULL,
    generation    INTEGER NOT NULL,
    PRIMARY KEY (upstream, account),
    CHECK ((secret_ref IS NULL) <> (secret_sealed IS NULL))
) STRICT, WITHOUT ROWID;

-- How each account stands, configured ones too.
CREATE TABLE standing (
    upstream    TEXT NOT NULL,
    account     TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('active', 'errored', 'suspended', 'disabled')),
    episode     INTEGER NOT NULL,
    since_ms    INTEGER,
    retry_at_ms INTEGER,
    reason      TEXT,
    budget_json TEXT NOT NULL,
    updated_ms  INTEGER NOT NULL,
    PRIMARY KEY (upstream, account)
) STRICT, WITHOUT ROWID;

-- The waits of an account; model is '' where the scope names none. The end is kept as (wall end, length), so that a
-- clock that was set wrong cannot make a wait longer than it was.
CREATE TABLE cooldowns (
    upstream  TEXT NOT NULL,
    account   TEXT NOT NULL,
    scope     TEXT NOT NULL CHECK (scope IN ('account', 'model', 'quota', 'rate')),
    model     TEXT NOT NULL,
    fault     TEXT NOT NULL,
    until_ms  INTEGER NOT NULL,
    length_ms INTEGER NOT NULL,
    PRIMARY KEY (upstream, account, scope, model),
    FOREIGN KEY (upstream, account) REFERENCES standing (upstream, account) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Who changed what.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at_ms   INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT NOT NULL
) STRICT;
