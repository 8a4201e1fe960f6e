-- Webhook endpoints: the URLs to which a tenant's events are sent.

CREATE TABLE webhook_endpoints (
    -- `svc:endpoint:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL CHECK (state IN ('active', 'paused', 'disabled', 'deleted')),
    -- Why the endpoint is paused or disabled.
    state_reason text,
    url text NOT NULL,
    -- Patterns of event types; empty for the default selection.
    event_types text[] NOT NULL,
    filter text,
    retry_policy jsonb NOT NULL,
    signing_suites text[] NOT NULL CHECK (signing_suites <> '{}'),
    rate_limit_per_second integer NOT NULL CHECK (rate_limit_per_second BETWEEN 1 AND 1000),
    -- The names of the headers, each with a mask instead of its value.
    headers jsonb NOT NULL,
    description text,
    -- The API key or the person of the tenant that created or adopted the endpoint. The endpoint is
    -- paused if the key or person loses access. Both are NULL if the installation's owner created
    -- it.
    key_id text COLLATE "C",
    person_subject text,
    -- The person's address in lower case.
    person_email text,
    adopted_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    -- Encrypted under the key ring (crates/core/src/keys/endpoint.rs), and removed when the
    -- endpoint is deleted.
    secret bytea,
    previous_secret bytea,
    previous_until timestamptz,
    sealed_headers bytea,
    CHECK (state = 'deleted' OR secret IS NOT NULL),
    CHECK (state <> 'deleted' OR num_nonnulls(secret, previous_secret, sealed_headers) = 0),
    CHECK ((state = 'deleted') = (deleted_at IS NOT NULL)),
    CHECK ((previous_secret IS NULL) = (previous_until IS NULL)),
    UNIQUE (tenant_id, id),
    FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys (tenant_id, id)
);
CREATE INDEX webhook_endpoints_page ON webhook_endpoints (tenant_id, created_at, id);
CREATE INDEX webhook_endpoints_page_all ON webhook_endpoints (created_at, id);
-- Re-encrypting secrets under another key of the key ring does not create a version of the record.
CALL govern('webhook_endpoints', secret => '{secret,previous_secret,sealed_headers}',
            quiet => '{secret,previous_secret,sealed_headers}');

-- ## Consequences of a change, in the same transaction

CREATE FUNCTION erase_webhook_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.secret := NULL;
    NEW.previous_secret := NULL;
    NEW.previous_until := NULL;
    NEW.sealed_headers := NULL;
    NEW.headers := '{}';
    NEW.state_reason := NULL;
    NEW.deleted_at := clock_timestamp();
    RETURN NEW;
END $$;
CREATE TRIGGER erase BEFORE UPDATE OF state ON webhook_endpoints
    FOR EACH ROW WHEN (NEW.state = 'deleted' AND OLD.state <> 'deleted')
    EXECUTE FUNCTION erase_webhook_endpoint();

-- Ends the on-demand events of a disabled or deleted endpoint, and cancels the open deliveries of a
-- deleted one. A paused endpoint still collects events, which wait.
CREATE FUNCTION stop_webhook_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM event_demands WHERE id = NEW.id;
    IF NEW.state = 'deleted' THEN
        UPDATE webhook_deliveries SET state = 'cancelled', ended_at = clock_timestamp()
        WHERE endpoint_id = NEW.id AND state = 'open';
        UPDATE webhook_replays SET state = 'cancelled', updated_at = clock_timestamp()
        WHERE endpoint_id = NEW.id AND state = 'running';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER stop AFTER UPDATE OF state ON webhook_endpoints
    FOR EACH ROW WHEN (NEW.state <> OLD.state AND NEW.state IN ('disabled', 'deleted'))
    EXECUTE FUNCTION stop_webhook_endpoint();

CREATE FUNCTION delete_webhook_endpoints() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhook_endpoints SET state = 'deleted', updated_at = clock_timestamp()
    WHERE tenant_id = NEW.id AND state <> 'deleted';
    RETURN NULL;
END $$;
CREATE TRIGGER delete_webhook_endpoints AFTER UPDATE OF state ON tenants
    FOR EACH ROW WHEN (NEW.state = 'deleted' AND OLD.state <> 'deleted')
    EXECUTE FUNCTION delete_webhook_endpoints();

-- An endpoint is paused when its key loses access: the key was revoked, lost the scope, or was
-- bound to principals. It may then see only events about these principals. The expiry of a key does
-- not pause its endpoints, because the access was not withdrawn.
CREATE FUNCTION pause_endpoints_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhook_endpoints
    SET state = 'paused', updated_at = clock_timestamp(),
        state_reason = CASE NEW.status WHEN 'revoked' THEN 'key_revoked' ELSE 'key_narrowed' END
    WHERE tenant_id = NEW.tenant_id AND key_id = NEW.id AND state = 'active';
    RETURN NULL;
END $$;
CREATE TRIGGER pause_webhook_endpoints AFTER UPDATE OF status, scopes, principal_ids ON api_keys
    FOR EACH ROW WHEN (
        NEW.status = 'revoked' AND OLD.status <> 'revoked'
        OR 'webhooks:write' = ANY (OLD.scopes) AND 'webhooks:write' <> ALL (NEW.scopes)
        OR OLD.principal_ids = '{}' AND NEW.principal_ids <> '{}')
    EXECUTE FUNCTION pause_endpoints_of_key();

-- Whether a tenant's principals exclude a person, by the same rule as for their tokens in the graph
-- (crates/core/src/graph/people.rs). The result depends on the live principals with the person's
-- subject. If there are none, it depends on the deleted ones, and on the people with the person's
-- address.
CREATE FUNCTION person_excluded(tenant text, subject text, address text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        bool_or(p.state <> 'active')
            FILTER (WHERE p.external_subject = subject AND p.deleted_at IS NULL),
        bool_or(p.state <> 'active' OR p.deleted_at IS NOT NULL),
        false)
    FROM principals p
    WHERE p.tenant_id = tenant
      AND (p.external_subject = subject
           OR (p.principal_class = 'human' AND lower(btrim(p.email)) = address))
$$;

CREATE FUNCTION pause_endpoints_of_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhook_endpoints e
    SET state = 'paused', state_reason = 'person_inactive', updated_at = clock_timestamp()
    WHERE e.tenant_id = NEW.tenant_id AND e.state = 'active' AND e.person_subject IS NOT NULL
      AND person_excluded(e.tenant_id, e.person_subject, e.person_email);
    RETURN NULL;
END $$;
CREATE TRIGGER pause_webhook_endpoints_insert AFTER INSERT ON principals
    FOR EACH ROW WHEN (NEW.state <> 'active' AND num_nonnulls(NEW.external_subject, NEW.email) > 0)
    EXECUTE FUNCTION pause_endpoints_of_person();
CREATE TRIGGER pause_webhook_endpoints_update AFTER UPDATE ON principals
    FOR EACH ROW
    WHEN ((OLD.state, OLD.deleted_at, OLD.external_subject, OLD.email) IS DISTINCT FROM
          (NEW.state, NEW.deleted_at, NEW.external_subject, NEW.email))
    EXECUTE FUNCTION pause_endpoints_of_person();
