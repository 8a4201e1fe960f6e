-- The answers first given under idempotency keys, written in the transaction of their effect.
-- Decisions keep theirs in decision_keys, which the recorder writes.
CREATE TABLE idempotency_keys (
    -- `-` where the caller is the owner and the request names no tenant.
    tenant_id text COLLATE "C" NOT NULL,
    -- Who asked: a person's issuer and subject, an API key's id. Nobody is shown another's answer.
    caller text COLLATE "C" NOT NULL,
    -- The method.
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL CHECK (length(request_sha256) = 32),
    -- Protobuf. NULL while the effect is under way, and once a secret was shown again.
    answer bytea,
    -- The answer holds a secret: it is sealed, and kept for a short time.
    sealed boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, caller, scope, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CALL guard('idempotency_keys');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE, DELETE ON idempotency_keys');
