-- A decision's idempotency key belongs to its caller, as in the registry: a person's issuer and
-- subject, or an API key's id, which does not change when the key gets a new secret. Existing
-- responses have no caller and are never returned again. Their keys are refused until the rows are
-- deleted after 24 hours, which prevents a second decision under the same key.
ALTER TABLE decision_keys ADD COLUMN caller text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE decision_keys ALTER COLUMN caller DROP DEFAULT;
ALTER TABLE decision_keys DROP CONSTRAINT decision_keys_pkey;
ALTER TABLE decision_keys ADD PRIMARY KEY (tenant_id, scope, key, caller);
