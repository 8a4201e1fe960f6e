LOCK TABLE idempotency_keys IN ACCESS EXCLUSIVE MODE;

CREATE TABLE decision_keys (
    tenant_id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL,
    decision_id text COLLATE "C" NOT NULL,
    answer bytea NOT NULL,
    created_at timestamptz NOT NULL,
    caller text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, scope, key, caller)
);
CREATE INDEX decision_keys_by_age ON decision_keys (created_at);
CALL guard('decision_keys');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON decision_keys');
CALL grant_to('{recorder}', 'SELECT, INSERT, UPDATE (answer) ON decision_keys');

-- The keys of reports are deleted. A repeated report is refused, because the first one is stored.
SELECT set_config('role', authority_role('system'), true);
INSERT INTO decision_keys
    (tenant_id, scope, key, request_sha256, decision_id, answer, created_at, caller)
SELECT tenant_id, scope, key, request_sha256, decision_id, answer, created_at, caller
FROM idempotency_keys WHERE decision_id IS NOT NULL;
DELETE FROM idempotency_keys WHERE decision_id IS NOT NULL OR scope = 'report';
RESET ROLE;

CALL revoke_from('{recorder}', 'SELECT (tenant_id, caller, scope, key, decision_id) ON idempotency_keys');
CALL revoke_from('{recorder}', 'INSERT, UPDATE (answer) ON idempotency_keys');
CALL revoke_from('{tenant,system}', 'UPDATE (answer) ON idempotency_keys');
CALL grant_to('{tenant,system}', 'UPDATE ON idempotency_keys');
DROP POLICY decisions ON idempotency_keys;
ALTER POLICY tenant ON idempotency_keys USING (may_see(tenant_id));
DO $$
BEGIN
    EXECUTE format('ALTER POLICY every_tenant ON idempotency_keys TO %s',
                   role_list('system', 'recorder'));
END $$;
ALTER TABLE idempotency_keys DROP COLUMN decision_id;
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey;
ALTER TABLE idempotency_keys ADD PRIMARY KEY (tenant_id, caller, scope, key);
