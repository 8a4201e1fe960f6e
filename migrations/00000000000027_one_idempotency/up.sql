-- One table for all responses to idempotency keys. The responses of decisions were in a separate
-- table. The roles can access the same rows as with two tables: the recorder the keys of decisions,
-- and a tenant its own other keys.

-- Locked so that a node of the previous version can't claim a key in the table that is dropped.
LOCK TABLE decision_keys, idempotency_keys IN ACCESS EXCLUSIVE MODE;

ALTER TABLE idempotency_keys
    -- The decision's id, if the recorder stored the response.
    ADD COLUMN decision_id text COLLATE "C";

SELECT set_config('role', authority_role('system'), true);
INSERT INTO idempotency_keys
    (tenant_id, caller, scope, key, request_sha256, answer, sealed, decision_id, created_at)
SELECT tenant_id, caller, scope, key, request_sha256, answer, false,
       CASE scope WHEN 'report' THEN NULL ELSE decision_id END, created_at
FROM decision_keys;
RESET ROLE;

DROP TABLE decision_keys;

-- The caller is the last column. One look-up therefore finds a caller's key and the rows without a
-- caller.
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey;
ALTER TABLE idempotency_keys ADD PRIMARY KEY (tenant_id, scope, key, caller);

ALTER POLICY tenant ON idempotency_keys USING (may_see(tenant_id) AND decision_id IS NULL);
DO $$
BEGIN
    EXECUTE format('ALTER POLICY every_tenant ON idempotency_keys TO %s', role_list('system'));
    EXECUTE format('CREATE POLICY decisions ON idempotency_keys TO %s USING (decision_id IS NOT NULL)',
                   role_list('recorder'));
END $$;

CALL revoke_from('{tenant,system}', 'UPDATE ON idempotency_keys');
CALL grant_to('{tenant,system}', 'UPDATE (answer) ON idempotency_keys');
CALL grant_to('{recorder}', 'SELECT (tenant_id, caller, scope, key, decision_id) ON idempotency_keys');
CALL grant_to('{recorder}', 'INSERT, UPDATE (answer) ON idempotency_keys');
