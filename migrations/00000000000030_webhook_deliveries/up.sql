-- Deliveries of events to webhook endpoints: where each endpoint stands in the log of events, its open and
-- ended deliveries with their attempts, and replays.

-- What deliveries change of an endpoint. Not its record: that would have a version for each.
CREATE TABLE webhook_cursors (
    endpoint_id text COLLATE "C" PRIMARY KEY REFERENCES webhook_endpoints,
    tenant_id text COLLATE "C" NOT NULL,
    -- The last event that was judged: a delivery of it exists, or it does not match.
    sequence bigint NOT NULL,
    -- Events that retention took before they were judged.
    lost_from bigint,
    lost_to bigint,
    -- Since its last success; NULL after one.
    failing_since timestamptz,
    last_success_at timestamptz,
    -- The circuit breaker: closed after that many failures in a row; open, with that many failed probes,
    -- until a time; or with a probe out, until a time.
    breaker text NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open', 'probing')),
    breaker_count integer NOT NULL DEFAULT 0,
    breaker_until timestamptz,
    -- By its own Retry-After.
    waits_until timestamptz,
    -- By its rate limit: when it would be idle if attempts took their share of a second each.
    paced_until timestamptz,
    filter_errors bigint NOT NULL DEFAULT 0,
    -- Test deliveries in the minute that began then.
    tested_from timestamptz,
    tests integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CALL guard('webhook_cursors');
CALL grant_to('{tenant}', 'SELECT ON webhook_cursors');
CALL grant_to('{tenant,system}', 'INSERT, UPDATE ON webhook_cursors');
CALL grant_to('{system}', 'SELECT, DELETE ON webhook_cursors');

CREATE TABLE webhook_replays (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    endpoint_id text COLLATE "C" NOT NULL REFERENCES webhook_endpoints,
    state text NOT NULL CHECK (state IN ('running', 'done', 'cancelled')),
    -- Of events: exclusive, and the last one.
    after_sequence bigint NOT NULL,
    until_sequence bigint NOT NULL,
    event_types text[] NOT NULL DEFAULT '{}',
    only_state text NOT NULL CHECK (only_state IN ('dead', 'undelivered', 'all')),
    position bigint NOT NULL,
    made bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
-- One at a time.
CREATE UNIQUE INDEX webhook_replays_running ON webhook_replays (endpoint_id) WHERE state = 'running';
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
    -- 0: the first attempt, 1: another, 2: a replay.
    lane smallint NOT NULL DEFAULT 0 CHECK (lane BETWEEN 0 AND 2),
    -- All of them, and those before its present schedule began.
    attempts integer NOT NULL DEFAULT 0,
    attempts_before integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- An attempt under way; whoever records it must still hold it.
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
    -- The delivery's: time comes first.
    id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    at timestamptz NOT NULL,
    status integer,
    error_class text CHECK (error_class IN ('address', 'connect', 'tls', 'timeout', 'http')),
    latency_ms integer,
    -- At most 1 KiB of an answer that was no success, secrets masked.
    body_start text,
    PRIMARY KEY (id, attempt)
) PARTITION BY RANGE (id);
CALL guard('webhook_attempts');
CALL grant_to('{tenant}', 'SELECT ON webhook_attempts');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON webhook_attempts');
CALL partition_by_time('webhook_attempts', 'svc:delivery:', 'week');
