-- Keys: the inventory of signing keys, the installation's own secrets, and API keys.

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
    due_at timestamptz,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    ended_at timestamptz
);
CREATE UNIQUE INDEX key_rotations_open ON key_rotations (kid)
    WHERE state IN ('pending', 'in_progress');

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

-- An API key's secret is never stored. Only its authentication code is, and the history leaves that
-- out.
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
    CHECK ((previous_code IS NULL) = (previous_until IS NULL)),
    UNIQUE (tenant_id, id)
);
CREATE INDEX api_keys_page ON api_keys (tenant_id, created_at, id);
CALL govern('api_keys', true, secret => '{secret_code,previous_code}');

-- The time of last use does not affect authority: it is written often, without a version in the
-- history or an entry in the change log.
DO $$
DECLARE
    columns text := (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
                     FROM pg_attribute
                     WHERE attrelid = 'api_keys'::regclass AND attnum > 0 AND NOT attisdropped
                       AND attname <> 'last_used_at');
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
