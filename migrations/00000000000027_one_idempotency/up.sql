-- One table for the responses under idempotency keys. Those of decisions were in a separate table. The
-- roles reach the same rows as before, and no more: the recorder the keys of decisions, a tenant its own
-- others.

-- A node of the previous version must not claim a key in the dropped table.
LOCK TABLE decision_keys, idempotency_keys IN ACCESS EXCLUSIVE MODE;

ALTER TABLE idempotency_keys
    -- The decision, if the recorder stored the response.
    ADD COLUMN decision_id text COLLATE "C";

SELECT set_config('role', authority_role('system'), true);
INSERT INTO idempotency_keys
    (tenant_id, caller, scope, key, request_sha256, answer, sealed, decision_id, created_at)
SELECT tenant_id, caller, scope, key, request_sha256, answer, false,
       CASE scope WHEN 'report' THEN NULL ELSE decision_id END, created_at
FROM decision_keys;
RESET ROLE;

DROP TABLE decision_keys;

-- The caller comes last, so that one look-up finds a caller's key and the rows without a caller.
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
