-- What an attempt cost in its provider's own units (Devin's ACUs), in thousandths; null: the provider told none.
ALTER TABLE ledger ADD COLUMN milli_units INTEGER;
