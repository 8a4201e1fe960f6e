-- Asking again: how long a decline counts, how many requests an agent may have open, why a request is void, and which
-- requests an API key asked.

ALTER TABLE tenants
    -- How long a declined question is denied, in seconds; NULL: as long as the request could have waited, at most a
    -- day.
    ADD COLUMN declined_for_seconds integer CHECK (declined_for_seconds BETWEEN 0 AND 86400),
    -- How many requests of one agent may be pending.
    ADD COLUMN open_requests_per_agent integer NOT NULL DEFAULT 500
        CHECK (open_requests_per_agent BETWEEN 1 AND 100000);

ALTER TABLE approvals
    -- NULL if the previous release declined it; `updated_at` then has the time.
    ADD COLUMN declined_at timestamptz,
    -- The longest time that the person who declined it set.
    ADD COLUMN declined_for_seconds integer CHECK (declined_for_seconds BETWEEN 0 AND 86400),
    -- When a person took the decline back, for later questions.
    ADD COLUMN reopened_at timestamptz,
    -- Why it is void, if no person voided it.
    ADD COLUMN void_reason text;
CALL grant_to('{tenant}', 'UPDATE (declined_at, declined_for_seconds, reopened_at, void_reason) ON approvals');
CALL grant_to('{recorder}', 'SELECT (subject, created_at, updated_at, declined_at, declined_for_seconds, reopened_at) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (void_reason) ON approvals');

-- Until when a declined question is denied: by the tenant's setting, or else as long as the request could have waited, at
-- most a day. The time set by the person who declined it applies if it is shorter.
CREATE FUNCTION declined_until(
    declined timestamptz, opened timestamptz, expires timestamptz, shorter integer, setting integer
) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT declined + make_interval(secs => least(
        86400, shorter, coalesce(setting, extract(epoch FROM expires - opened)))::double precision)
$$;

-- ## Which requests an API key asked

CREATE TABLE approval_askers (
    key_id text COLLATE "C" NOT NULL,
    -- The request's time, because lists are ordered by time.
    created_at timestamptz NOT NULL,
    approval_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (key_id, created_at, approval_id)
);
CALL guard('approval_askers');
CALL grant_to('{tenant}', 'SELECT ON approval_askers');
CALL grant_to('{recorder,system}', 'INSERT ON approval_askers');

-- A trigger, because the previous release also opens requests.
CREATE FUNCTION note_askers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO approval_askers (key_id, created_at, approval_id, tenant_id)
    SELECT asker ->> 'id', NEW.created_at, NEW.id, NEW.tenant_id
    FROM unnest(NEW.requested_by) AS asker WHERE asker ->> 'kind' = 'api_key'
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_askers AFTER INSERT OR UPDATE OF requested_by ON approvals
    FOR EACH ROW EXECUTE FUNCTION note_askers();

-- ## Events

-- As before, but a request that the service made void was not withdrawn by a person.
CREATE OR REPLACE FUNCTION announce_approval() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kind text;
    reason text;
    outcome text;
    recorder boolean := current_setting('role') = authority_role('recorder');
BEGIN
    IF TG_OP = 'INSERT' THEN
        kind := 'requires_approval';
        reason := NEW.reason_code;
    ELSE
        kind := CASE NEW.state WHEN 'approved' THEN 'approved' WHEN 'expired' THEN 'expired'
                               WHEN 'declined' THEN 'declined' WHEN 'void' THEN 'declined' END;
        outcome := CASE WHEN NEW.state = 'void' AND OLD.state = 'approved' AND NEW.void_reason IS NULL
                        THEN 'withdrawn' ELSE NEW.state END;
        reason := 'approval_' || outcome;
    END IF;
    IF kind IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM announce(
        'svc.decision.' || kind, NEW.tenant_id, NEW.id, NEW.decision_id,
        CASE WHEN NOT recorder AND kind <> 'expired' THEN event_actor(NEW.tenant_id) END,
        NEW.subject, reason,
        jsonb_build_object(
            'decision_id', NEW.decision_id, 'approval_id', NEW.id, 'needed', NEW.needed)
        || CASE WHEN kind <> 'requires_approval' THEN jsonb_build_object('given', NEW.given) ELSE '{}' END
        || CASE WHEN kind IN ('requires_approval', 'approved')
                THEN jsonb_build_object('expires_at', event_time(NEW.expires_at)) ELSE '{}' END
        || CASE WHEN kind = 'declined' THEN jsonb_build_object('outcome', outcome) ELSE '{}' END,
        CASE WHEN kind = 'expired' THEN NEW.expires_at ELSE clock_timestamp() END);
    RETURN NULL;
END $$;

-- ## The limit of open requests, for admins

ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'approval.limit_reached', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.disabled', 'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost',
    'audit_stream.failing', 'api_key.expiring', 'delegation.expiring', 'reality.drift_detected')) NOT VALID;

CALL grant_to('{recorder}', 'SELECT (id, tenant_id, kind, subject_ref) ON notifications');
-- Once an hour for each agent. The caller has the agent's lock; two of its decisions can't notify at once.
CREATE FUNCTION notify_of_open_requests(tenant text, agent text, pending integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM notifications n
        WHERE n.tenant_id = tenant AND n.kind = 'approval.limit_reached' AND n.subject_ref = agent
          AND n.id >= time_bound('svc:notification:', clock_timestamp() - interval '1 hour')
    ) THEN
        PERFORM notify_people('approval.limit_reached', tenant, '{admin}', agent,
                              jsonb_build_object('principal_id', agent, 'pending', pending));
    END IF;
END $$;
