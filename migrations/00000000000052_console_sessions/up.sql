-- The sessions of people at the console (crates/console). No tenant's role may read them.

CREATE TABLE console_sessions (
    -- SHA-256 of the cookie. The cookie itself is not stored.
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    -- Issuer and subject of the person's tokens, `<iss>|<sub>`.
    person text COLLATE "C" NOT NULL,
    email text,
    -- The id of the session at the identity provider. With it, the provider can end this session.
    sid text COLLATE "C",
    -- The tenant in the person's tokens; NULL for the installation's owner.
    tenant_id text COLLATE "C" REFERENCES tenants,
    -- The tenant that the owner has selected; NULL for all tenants.
    shown_tenant_id text COLLATE "C" REFERENCES tenants,
    -- The person's tokens, encrypted under the key ring (crates/core/src/keys/console_session.rs).
    sealed_tokens bytea NOT NULL,
    -- The approval requests that the person has opened: the request's digest by the approval's id.
    -- Several requests can be approved at once only after each of them was shown.
    opened jsonb NOT NULL DEFAULT '{}',
    -- When the person last authenticated.
    authenticated_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX console_sessions_person ON console_sessions (person);
CREATE INDEX console_sessions_sid ON console_sessions (sid) WHERE sid IS NOT NULL;
CREATE INDEX console_sessions_expires_at ON console_sessions (expires_at);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON console_sessions');
