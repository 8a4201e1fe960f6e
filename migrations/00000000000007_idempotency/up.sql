-- The first responses to idempotency keys, written in the same transaction as the call's effect.
-- The responses of decisions are in decision_keys, which the recorder writes.
CREATE TABLE idempotency_keys (
    -- `-` if the caller is the owner and the request has no tenant.
    tenant_id text COLLATE "C" NOT NULL,
    -- The caller: a person's issuer and subject, or an API key's id. A caller never gets the
    -- response of another caller.
    caller text COLLATE "C" NOT NULL,
    -- The API method.
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL CHECK (length(request_sha256) = 32),
    -- The response in Protobuf. NULL while the call is in progress, and after a response with a
    -- secret was returned a second time.
    answer bytea,
    -- Whether the response contains a secret. It is then sealed and kept for a short time.
    sealed boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, caller, scope, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CALL guard('idempotency_keys');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE, DELETE ON idempotency_keys');
