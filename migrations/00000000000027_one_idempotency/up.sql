-- One table for the answers given under idempotency keys. Decisions kept theirs in a table of their own.
-- What a tenant's role and the recorder's could reach of the two they still reach, and no more: the
-- recorder the keys of decisions, the tenant the others of its own.

-- A node of before must not claim a key in the table that goes.
LOCK TABLE decision_keys, idempotency_keys IN ACCESS EXCLUSIVE MODE;

ALTER TABLE idempotency_keys
    -- Which decision it was, where the recorder keeps the answer.
    ADD COLUMN decision_id text COLLATE "C";

SELECT set_config('role', authority_role('system'), true);
INSERT INTO idempotency_keys
    (tenant_id, caller, scope, key, request_sha256, answer, sealed, decision_id, created_at)
SELECT tenant_id, caller, scope, key, request_sha256, answer, false,
       CASE scope WHEN 'report' THEN NULL ELSE decision_id END, created_at
FROM decision_keys;
RESET ROLE;

DROP TABLE decision_keys;

-- The caller comes last, so that one look finds a caller's key and what was kept under it of nobody.
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
