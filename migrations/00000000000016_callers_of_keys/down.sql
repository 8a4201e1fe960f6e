-- Without the caller, each key can have only one response. All responses are deleted.
DELETE FROM decision_keys;
ALTER TABLE decision_keys DROP CONSTRAINT decision_keys_pkey;
ALTER TABLE decision_keys DROP COLUMN caller;
ALTER TABLE decision_keys ADD PRIMARY KEY (tenant_id, scope, key);
