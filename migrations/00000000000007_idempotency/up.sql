-- The first responses under idempotency keys, written in the transaction of their effect. Those of
-- decisions are in decision_keys, which the recorder writes.
CREATE TABLE idempotency_keys (
    -- `-` if the caller is the owner and the request has no tenant.
    tenant_id text COLLATE "C" NOT NULL,
    -- The caller: a person's issuer and subject, or an API key's id. Nobody gets another caller's response.
    caller text COLLATE "C" NOT NULL,
    -- The method.
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL CHECK (length(request_sha256) = 32),
    -- Protobuf. NULL while the effect is in progress, and after a secret was shown again.
    answer bytea,
    -- Whether the response contains a secret: then it is sealed, and kept for a short time.
    sealed boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, caller, scope, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CALL guard('idempotency_keys');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE, DELETE ON idempotency_keys');
