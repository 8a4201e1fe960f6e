-- The sessions of people at the console (crates/console). No tenant's role may read them.

CREATE TABLE console_sessions (
    -- SHA-256 of the cookie, which is nowhere else.
    digest bytea PRIMARY KEY CHECK (length(digest) = 32),
    -- Issuer and subject of their tokens, `<iss>|<sub>`.
    person text COLLATE "C" NOT NULL,
    email text,
    -- The session at the identity provider, by which it can end this one.
    sid text COLLATE "C",
    -- The tenant of their tokens; null for the installation's owner.
    tenant_id text COLLATE "C" REFERENCES tenants,
    -- The tenant that an owner looks at; null for all.
    shown_tenant_id text COLLATE "C" REFERENCES tenants,
    -- Their tokens, sealed under the key ring (crates/core/src/keys/console_session.rs).
    sealed_tokens bytea NOT NULL,
    -- The digest of the request of each approval that was opened, by its id: several are approved at once only
    -- after each was shown.
    opened jsonb NOT NULL DEFAULT '{}',
    -- When the person last proved who they are.
    authenticated_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX console_sessions_person ON console_sessions (person);
CREATE INDEX console_sessions_sid ON console_sessions (sid) WHERE sid IS NOT NULL;
CREATE INDEX console_sessions_expires_at ON console_sessions (expires_at);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON console_sessions');
