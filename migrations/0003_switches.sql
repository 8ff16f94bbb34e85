-- What the operator has switched from the command line, for a gateway to take up. Only the command line adds to it, and
-- a gateway only marks as taken what it has put into the account's standing: neither can overwrite what the other wrote.
-- at_ms rises with every switch of an account, whatever the clock says, so that it names one of them.
CREATE TABLE switches (
    upstream TEXT NOT NULL,
    account  TEXT NOT NULL,
    enabled  INTEGER NOT NULL,
    at_ms    INTEGER NOT NULL,
    taken    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (upstream, account)
) STRICT, WITHOUT ROWID;
