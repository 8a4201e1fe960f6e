-- Deliveries: webhook endpoints, audit streams' positions, and how long events and deliveries are
-- kept.

-- ## Webhook endpoints

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
    -- Encrypted under the key ring (crates/keys/src/endpoint.rs), and removed when the
    -- endpoint is deleted.
    secret bytea,
    previous_secret bytea,
    previous_until timestamptz,
    sealed_headers bytea,
    -- The reason that the caller stated when pausing the endpoint. It is cleared when the endpoint is
    -- enabled or deleted.
    pause_reason text,
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

CREATE FUNCTION clear_pause_reason() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.pause_reason := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER clear_pause_reason BEFORE UPDATE OF state ON webhook_endpoints
    FOR EACH ROW WHEN (NEW.state <> 'paused') EXECUTE FUNCTION clear_pause_reason();

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
-- bound to principals. A bound key may see only events about its principals. The expiry of a key does
-- not pause its endpoints, because the access was not withdrawn. If the endpoint is already paused on
-- request, its `state_reason` still changes: the person who enables the endpoint should see it.
CREATE FUNCTION pause_endpoints_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhook_endpoints
    SET state = 'paused', updated_at = clock_timestamp(),
        state_reason = CASE NEW.status WHEN 'revoked' THEN 'key_revoked' ELSE 'key_narrowed' END
    WHERE tenant_id = NEW.tenant_id AND key_id = NEW.id
      AND (state = 'active' OR state = 'paused' AND state_reason = 'asked');
    RETURN NULL;
END $$;
CREATE TRIGGER pause_webhook_endpoints AFTER UPDATE OF status, scopes, principal_ids ON api_keys
    FOR EACH ROW WHEN (
        NEW.status = 'revoked' AND OLD.status <> 'revoked'
        OR 'webhooks:write' = ANY (OLD.scopes) AND 'webhooks:write' <> ALL (NEW.scopes)
        OR OLD.principal_ids = '{}' AND NEW.principal_ids <> '{}')
    EXECUTE FUNCTION pause_endpoints_of_key();

-- Whether a tenant's principals exclude a person, by the same rule as for their tokens in the graph
-- (crates/graph/src/people.rs). The result depends on the live principals with the person's
-- subject. Without any, it depends on the deleted principals with that subject, and on the people
-- with the person's address.
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
    WHERE e.tenant_id = NEW.tenant_id AND e.person_subject IS NOT NULL
      AND (e.state = 'active' OR e.state = 'paused' AND e.state_reason = 'asked')
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

-- ## Deliveries

-- The state of an endpoint that changes with its deliveries: its position in the event log, and its
-- failures. It is separate from the endpoint's record, which would otherwise get a version in the
-- history for each change.
CREATE TABLE webhook_cursors (
    endpoint_id text COLLATE "C" PRIMARY KEY REFERENCES webhook_endpoints,
    tenant_id text COLLATE "C" NOT NULL,
    -- The sequence of the last event that was judged: either a delivery was created for it, or the
    -- endpoint does not accept it.
    sequence bigint NOT NULL,
    -- The first and the last sequence of events that retention deleted before they were judged.
    lost_from bigint,
    lost_to bigint,
    -- When the failures since the last success began; NULL after a success.
    failing_since timestamptz,
    last_success_at timestamptz,
    -- The circuit breaker. `closed`: `breaker_count` counts the consecutive failures. `open`:
    -- `breaker_count` counts the failed probes, and the breaker is open until `breaker_until`.
    -- `probing`: a probe is in progress until `breaker_until`.
    breaker text NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open', 'probing')),
    breaker_count integer NOT NULL DEFAULT 0,
    breaker_until timestamptz,
    -- The end of the wait that the receiver requested with Retry-After.
    waits_until timestamptz,
    filter_errors bigint NOT NULL DEFAULT 0,
    -- `tests` is the number of test deliveries in the minute that began at `tested_from`.
    tested_from timestamptz,
    tests integer NOT NULL DEFAULT 0,
    -- The time of the first delivery that used up its attempts; NULL after a success.
    dead_since timestamptz
) WITH (fillfactor = 50);
CALL guard('webhook_cursors');
CALL grant_to('{tenant}', 'SELECT ON webhook_cursors');
CALL grant_to('{tenant,system}', 'INSERT, UPDATE ON webhook_cursors');
CALL grant_to('{system}', 'SELECT, DELETE ON webhook_cursors');

-- The state of an endpoint's rate limit, which applies at the moment of sending. It is separate from
-- webhook_cursors, because other transactions lock those rows for too long.
CREATE TABLE webhook_paces (
    endpoint_id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    -- The time at which the whole limit is available again, if each attempt uses an equal share of a
    -- second.
    paced_until timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CALL guard('webhook_paces');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON webhook_paces');

CREATE TABLE webhook_replays (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    endpoint_id text COLLATE "C" NOT NULL REFERENCES webhook_endpoints,
    state text NOT NULL CHECK (state IN ('running', 'done', 'cancelled')),
    -- The range of event sequences: the start is exclusive, the end inclusive.
    after_sequence bigint NOT NULL,
    until_sequence bigint NOT NULL,
    event_types text[] NOT NULL DEFAULT '{}',
    only_state text NOT NULL CHECK (only_state IN ('dead', 'undelivered', 'all')),
    position bigint NOT NULL,
    made bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The first and the last sequence of events that retention deleted before the replay reached
    -- them.
    lost_from bigint,
    lost_to bigint
);
-- An endpoint has at most one running replay.
CREATE UNIQUE INDEX webhook_replays_running ON webhook_replays (endpoint_id) WHERE state = 'running';
-- For lists of an endpoint's replays, newest first.
CREATE INDEX webhook_replays_page ON webhook_replays (endpoint_id, id);
CALL guard('webhook_replays');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE ON webhook_replays');

CREATE TABLE webhook_deliveries (
    -- `svc:delivery:<UUIDv7>`
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    replay_id text COLLATE "C",
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'delivered', 'dead', 'cancelled')),
    -- 0: first attempts, 1: retries, 2: replays.
    lane smallint NOT NULL DEFAULT 0 CHECK (lane BETWEEN 0 AND 2),
    -- The number of all attempts, and of the attempts before the current retry schedule started.
    attempts integer NOT NULL DEFAULT 0,
    attempts_before integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The lease of the node that has claimed the delivery. Only that node may record the result.
    lease uuid,
    leased_until timestamptz,
    last_status integer,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz
) PARTITION BY RANGE (id);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (endpoint_id, lane, due_at)
    WHERE state = 'open';
CREATE INDEX webhook_deliveries_page ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (endpoint_id, id) WHERE state = 'dead';
CREATE INDEX webhook_deliveries_replay ON webhook_deliveries (replay_id, state)
    WHERE replay_id IS NOT NULL;
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (event_id, endpoint_id);
CALL guard('webhook_deliveries');
CALL grant_to('{tenant}', 'SELECT, INSERT ON webhook_deliveries');
CALL grant_to('{tenant}', 'UPDATE (state, lane, attempts_before, due_at, lease, leased_until, ended_at)
    ON webhook_deliveries');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON webhook_deliveries');
CALL partition_by_time('webhook_deliveries', 'svc:delivery:', 'week');

CREATE TABLE webhook_attempts (
    -- The delivery's id, which starts with the time.
    id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    at timestamptz NOT NULL,
    status integer,
    error_class text CHECK (error_class IN ('address', 'connect', 'tls_expired', 'tls_not_yet_valid', 'tls_name',
        'tls_authority', 'tls_version', 'tls_protocol', 'tls_client_certificate', 'tls', 'timeout', 'http')),
    latency_ms integer,
    -- The start of the body of an unsuccessful response, at most 1 KiB, with secrets masked.
    body_start text,
    PRIMARY KEY (id, attempt)
) PARTITION BY RANGE (id);
CALL guard('webhook_attempts');
CALL grant_to('{tenant}', 'SELECT ON webhook_attempts');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON webhook_attempts');
CALL partition_by_time('webhook_attempts', 'svc:delivery:', 'week');

-- ## Audit streams

-- The position of each audit stream in its tenant's event log.
CREATE TABLE audit_cursors (
    stream_id text COLLATE "C" PRIMARY KEY REFERENCES audit_streams,
    tenant_id text COLLATE "C" NOT NULL,
    -- The sequence of the last event that the sink has accepted or the filter has left out.
    sequence bigint NOT NULL DEFAULT 0,
    -- The first and the last sequence of events that retention deleted before they were sent.
    lost_from bigint,
    lost_to bigint,
    -- The signing time of the newest checkpoint that was sent.
    checkpoint_at timestamptz,
    -- The number of failures since the last success.
    failures integer NOT NULL DEFAULT 0,
    next_try_at timestamptz,
    -- The lease of the node that sends the stream. Only that node may record progress.
    lease uuid,
    leased_until timestamptz,
    -- The time and the error of the last failure.
    failed_at timestamptz,
    last_error text,
    -- The failures of checkpoints, which are retried separately.
    checkpoint_failures integer NOT NULL DEFAULT 0,
    checkpoint_failed_at timestamptz,
    checkpoint_error text
) WITH (fillfactor = 50);
CALL guard('audit_cursors');
CALL grant_to('{tenant}', 'SELECT, INSERT ON audit_cursors');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON audit_cursors');

-- Whether a checkpoint that the sink refused may be retried now: after 1, 2, 4 seconds and so on,
-- up to a minute. Events are sent independently of it.
CREATE FUNCTION may_try_checkpoint(failures integer, failed_at timestamptz) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
    SELECT failures = 0
        OR failed_at + least(60, 2 ^ least(failures - 1, 6)) * interval '1 s' <= clock_timestamp()
$$;

-- ## Retention

-- Returns the time before which events are deleted, for a retention of this many days. It is the
-- start of a day in UTC. A tenant's rows are therefore deleted once a day. Each row is kept for at
-- least that many days, and for at most one day more.
CREATE FUNCTION events_kept_from(days integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * days)
$$;

-- Returns the partitions of events, deliveries and attempts that have only ids from before the
-- shortest retention, with their bounds. `lower` is NULL for the first partition of a table.
CREATE FUNCTION old_event_partitions()
RETURNS TABLE (parent text, part regclass, lower text, upper text) LANGUAGE sql STABLE AS $$
    SELECT p.table_name, i.inhrelid::regclass, bound.texts[1], bound.texts[2]
    FROM time_partitions p
    JOIN pg_inherits i ON i.inhparent = p.table_name::regclass
    JOIN pg_class c ON c.oid = i.inhrelid
    CROSS JOIN LATERAL (SELECT regexp_match(
        pg_get_expr(c.relpartbound, c.oid),
        '^FOR VALUES FROM \((?:MINVALUE|''([^'']+)'')\) TO \(''([^'']+)''\)$') AS texts) AS bound
    WHERE p.table_name IN ('events', 'webhook_deliveries', 'webhook_attempts')
      AND bound.texts[2] COLLATE "C" <= time_bound(p.prefix, now() - interval '14 days') COLLATE "C"
$$;

-- Drops an old partition if it has no rows. Runs as the tables' owner, because the service may not
-- drop tables. The policies of a table hide all its rows from the owner. With row_security off,
-- reading such a table is an error. Hidden rows can therefore not be mistaken for an empty
-- partition.
CREATE FUNCTION drop_event_partition(part regclass) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET row_security = off SET lock_timeout = '200ms' AS $$
DECLARE
    parent text;
    found_id text;
BEGIN
    SELECT old.parent INTO parent FROM old_event_partitions() old
    WHERE old.part = drop_event_partition.part;
    IF parent IS NULL THEN
        RAISE '`%` is not an old partition of events or deliveries', part;
    END IF;
    -- Writers take both locks in the same order. If a long reader holds a lock, this function gives
    -- up after `lock_timeout`, because other statements have to wait behind this one.
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', parent);
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', part);
    EXECUTE format('SELECT id FROM ONLY %s ORDER BY id LIMIT 1', part) INTO found_id;
    IF found_id IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %s', part);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;

-- Drops all old partitions without rows, and returns their number. The caller sees every tenant's
-- rows, and checks for rows before locking.
CREATE FUNCTION drop_empty_event_partitions() RETURNS integer LANGUAGE plpgsql
SET search_path = public, pg_temp AS $$
DECLARE
    old record;
    found_id text;
    dropped integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(4157002);
    FOR old IN SELECT * FROM old_event_partitions() LOOP
        EXECUTE format(
            'SELECT id FROM %I WHERE id < %L AND (%L IS NULL OR id >= %L) ORDER BY id LIMIT 1',
            old.parent, old.upper, old.lower, old.lower) INTO found_id;
        IF found_id IS NULL AND drop_event_partition(old.part) THEN
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;
REVOKE EXECUTE ON FUNCTION drop_event_partition, drop_empty_event_partitions FROM PUBLIC;
CALL grant_to('{system}', 'EXECUTE ON FUNCTION drop_event_partition, drop_empty_event_partitions');
