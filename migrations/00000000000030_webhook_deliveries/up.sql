-- Deliveries of events to webhook endpoints: each endpoint's position in the event log, its open
-- and ended deliveries with their attempts, and replays.

-- The state of an endpoint that changes with its deliveries. It is separate from the endpoint's
-- record, which would otherwise get a version in the history for each change.
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
    -- The circuit breaker. `closed`: `breaker_count` is the number of consecutive failures. `open`:
    -- it is the number of failed probes, and the breaker is open until `breaker_until`. `probing`:
    -- a probe is in progress until `breaker_until`.
    breaker text NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'open', 'probing')),
    breaker_count integer NOT NULL DEFAULT 0,
    breaker_until timestamptz,
    -- The end of the wait that the receiver requested with Retry-After.
    waits_until timestamptz,
    -- The state of the rate limit: when the endpoint would be idle if each attempt took an equal
    -- share of a second.
    paced_until timestamptz,
    filter_errors bigint NOT NULL DEFAULT 0,
    -- `tests` is the number of test deliveries in the minute that began at `tested_from`.
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
    -- The range of event sequences: the start is exclusive, the end inclusive.
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
-- An endpoint has at most one running replay.
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
    error_class text CHECK (error_class IN ('address', 'connect', 'tls', 'timeout', 'http')),
    latency_ms integer,
    -- The start of the body of an unsuccessful response, at most 1 KiB, with secrets masked.
    body_start text,
    PRIMARY KEY (id, attempt)
) PARTITION BY RANGE (id);
CALL guard('webhook_attempts');
CALL grant_to('{tenant}', 'SELECT ON webhook_attempts');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON webhook_attempts');
CALL partition_by_time('webhook_attempts', 'svc:delivery:', 'week');
