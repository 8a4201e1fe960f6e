-- Identity: signing keys, the installation's own secrets, API keys, the sessions of people at the
-- console, and the environments (production, development) that have used the database.

-- ## Signing keys

-- Signing keys have no tenant, and only the system role can access them. Private keys are encrypted
-- under the key ring (crates/crypto/src/envelope.rs). The ciphertext is bound to
-- `-|kid|alg|purpose`.
CREATE TABLE signing_keys (
    kid text COLLATE "C" PRIMARY KEY,
    alg text NOT NULL CHECK (alg IN ('EdDSA', 'ES256', 'ES384', 'RS256')),
    purpose text COLLATE "C" NOT NULL CHECK (length(purpose) BETWEEN 1 AND 64),
    custody_provider text NOT NULL DEFAULT 'in-process',
    custody_ref text,
    status text NOT NULL CHECK (status IN ('active', 'rotating', 'retired', 'revoked')),
    -- Whether the service created the key for its own signatures, and not on request.
    managed boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    activated_at timestamptz,
    rotation_due_at timestamptz,
    rotated_at timestamptz,
    retired_at timestamptz,
    revoked_at timestamptz CHECK ((status = 'revoked') = (revoked_at IS NOT NULL)),
    notes text CHECK (length(notes) <= 4000),
    public_jwk jsonb NOT NULL,
    private_key bytea
);
-- Ensures that there is at most one active and one rotating key for each purpose, even if several
-- nodes create keys.
CREATE UNIQUE INDEX signing_keys_signer ON signing_keys (purpose)
    WHERE managed AND status = 'active';
CREATE UNIQUE INDEX signing_keys_next ON signing_keys (purpose)
    WHERE managed AND status = 'rotating';

CREATE FUNCTION keep_signing_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status = 'revoked' AND NEW.status <> 'revoked' THEN
        RAISE 'the key `%` was revoked, and stays so', OLD.kid
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF (OLD.kid, OLD.alg, OLD.purpose, OLD.managed, OLD.public_jwk, OLD.created_at)
        IS DISTINCT FROM
       (NEW.kid, NEW.alg, NEW.purpose, NEW.managed, NEW.public_jwk, NEW.created_at)
    THEN
        RAISE 'what makes the key `%` cannot change', OLD.kid
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_signing_key BEFORE UPDATE ON signing_keys
    FOR EACH ROW EXECUTE FUNCTION keep_signing_key();

-- The rotations that are requested, in progress and done.
CREATE TABLE key_rotations (
    id text COLLATE "C" PRIMARY KEY,
    kid text COLLATE "C" NOT NULL REFERENCES signing_keys,
    successor_kid text COLLATE "C" REFERENCES signing_keys,
    state text NOT NULL CHECK (state IN ('pending', 'in_progress', 'done', 'cancelled')),
    reason text,
    due_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    ended_at timestamptz,
    -- When the successor key was published. It signs only later, when verifiers know it.
    begun_at timestamptz
);
CREATE UNIQUE INDEX key_rotations_open ON key_rotations (kid)
    WHERE state IN ('pending', 'in_progress');

-- ## Secrets

-- Secrets that all nodes share, sealed under the key ring. `mac` is the root key of all message
-- authentication codes (API keys, page tokens). It stays the same when key-encryption keys are
-- replaced.
CREATE TABLE service_secrets (
    name text COLLATE "C" PRIMARY KEY,
    sealed bytea NOT NULL,
    created_at timestamptz NOT NULL
);

REVOKE ALL ON signing_keys, key_rotations, service_secrets FROM PUBLIC;
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON signing_keys, key_rotations, service_secrets');

-- ## API keys

-- An API key's secret is never stored. The row has the secret's authentication code, and the history
-- leaves this code out.
CREATE TABLE api_keys (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants (id),
    label text NOT NULL,
    prefix text COLLATE "C" NOT NULL UNIQUE,
    scopes text[] NOT NULL,
    principal_ids text[] NOT NULL,
    ip_allowlist text[] NOT NULL,
    status text NOT NULL CHECK (status IN ('active', 'revoked')),
    expires_at timestamptz,
    last_used_at timestamptz,
    rotated_at timestamptz,
    revoked_at timestamptz,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    secret_code bytea NOT NULL CHECK (length(secret_code) = 32),
    -- The code of the secret before a rotation, while that secret is still valid.
    previous_code bytea CHECK (length(previous_code) = 32),
    previous_until timestamptz,
    rotated_by text,
    -- Everyone who created or rotated the key, as `<iss>|<sub>`. A rotation does not change the
    -- key's id. The list therefore includes the creator and everyone who rotated the key. Empty if
    -- the command line or a seed created the key.
    people text[] NOT NULL DEFAULT '{}',
    -- The addresses of the people in `people`.
    people_emails text[] NOT NULL DEFAULT '{}',
    -- How many decisions per second the key may have; NULL means no limit.
    decisions_per_second integer CHECK (decisions_per_second BETWEEN 1 AND 100000),
    CHECK ((previous_code IS NULL) = (previous_until IS NULL)),
    UNIQUE (tenant_id, id)
);
CREATE INDEX api_keys_page ON api_keys (tenant_id, created_at, id);
CREATE INDEX api_keys_expiring ON api_keys (expires_at)
    WHERE status = 'active' AND expires_at IS NOT NULL;
CALL govern('api_keys', true, secret => '{secret_code,previous_code}');

-- A change of these columns alone adds no version to the history and no entry to the change log.
-- `last_used_at` does not affect authority and is written often. The other columns only change
-- together with columns that add a version and an entry.
DO $$
DECLARE
    columns text := (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
                     FROM pg_attribute
                     WHERE attrelid = 'api_keys'::regclass AND attnum > 0
                       AND attname NOT IN ('last_used_at', 'rotated_by', 'people', 'people_emails',
                                           'decisions_per_second'));
    made text;
BEGIN
    FOR made IN SELECT pg_get_triggerdef(oid) FROM pg_trigger
                WHERE tgrelid = 'api_keys'::regclass AND tgname IN ('keep_version', 'log_change')
    LOOP
        EXECUTE format('DROP TRIGGER %I ON api_keys',
                       substring(made FROM 'TRIGGER (\w+) AFTER'));
        EXECUTE replace(made, ' OR UPDATE ON ', format(' OR UPDATE OF %s ON ', columns));
    END LOOP;
END $$;

-- Called first in each transaction in which an API key reads, in the same snapshot. Once a
-- revocation is committed, the key can't read on any node.
CREATE FUNCTION require_api_key(key text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM api_keys
                   WHERE id = key AND status = 'active'
                     AND (expires_at IS NULL OR expires_at > clock_timestamp())) THEN
        RAISE 'the API key has ended' USING ERRCODE = 'invalid_authorization_specification';
    END IF;
END $$;

-- ## Console sessions (crates/console)

-- No tenant's role may read this table.
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
    -- The person's tokens, encrypted under the key ring (crates/keys/src/console_session.rs).
    sealed_tokens bytea NOT NULL,
    -- The approval requests that the person has opened: the request's digest by the approval's id.
    -- Several requests can be approved at once only after each of them was shown.
    opened jsonb NOT NULL DEFAULT '{}',
    -- When the person last authenticated.
    authenticated_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- The time until which one request may refresh the session's tokens; NULL if no request is doing
    -- so. Some providers accept a refresh token only once, and revoke all tokens of the session if it
    -- is reused. Therefore only one request at a time, across all nodes, sends the token.
    refreshing_until timestamptz
);
CREATE INDEX console_sessions_person ON console_sessions (person);
CREATE INDEX console_sessions_sid ON console_sessions (sid) WHERE sid IS NOT NULL;
CREATE INDEX console_sessions_expires_at ON console_sessions (expires_at);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON console_sessions');

-- ## Environments

-- Whether production has used this database. The development mode then refuses the database,
-- because it would add publicly known people and keys.
CREATE TABLE production_use (
    -- One row at most.
    is_used boolean PRIMARY KEY DEFAULT true CHECK (is_used),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CALL grant_to('{system}', 'SELECT, INSERT ON production_use');

-- Called at startup before a role is set.
CREATE FUNCTION is_production() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS 'SELECT EXISTS (SELECT FROM production_use)';

-- Whether a development server has started on this database. Production then refuses the database.
-- Other data may not show this: with an external identity provider, a development server creates no
-- keys and adds no seed data.
CREATE TABLE development_use (
    -- One row at most.
    is_used boolean PRIMARY KEY DEFAULT true CHECK (is_used),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CALL grant_to('{system}', 'SELECT, INSERT ON development_use');
