-- An idempotency key of a decision is its caller's own, as the registry's are: a person's issuer and
-- subject, or an API key's id, which stays the same when the key gets a new secret. Answers kept before
-- have no caller. They are repeated to nobody, and their keys are refused until they are forgotten after
-- 24 hours: so nothing is decided twice under one.
ALTER TABLE decision_keys ADD COLUMN caller text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE decision_keys ALTER COLUMN caller DROP DEFAULT;
ALTER TABLE decision_keys DROP CONSTRAINT decision_keys_pkey;
ALTER TABLE decision_keys ADD PRIMARY KEY (tenant_id, scope, key, caller);
