-- Repeated approval requests: how long a decline applies, how many requests an agent may have open,
-- why a request is void, and which requests an API key made.

ALTER TABLE tenants
    -- For how many seconds after a decline the same request is denied. NULL: as long as the
    -- declined request could have waited, at most a day.
    ADD COLUMN declined_for_seconds integer CHECK (declined_for_seconds BETWEEN 0 AND 86400),
    -- How many approval requests of one agent may be pending.
    ADD COLUMN open_requests_per_agent integer NOT NULL DEFAULT 500
        CHECK (open_requests_per_agent BETWEEN 1 AND 100000);

ALTER TABLE approvals
    -- When the request was declined. NULL if the previous release declined it; `updated_at` then
    -- has the time.
    ADD COLUMN declined_at timestamptz,
    -- The person who declined the request can shorten the time to this many seconds; NULL if they
    -- did not.
    ADD COLUMN declined_for_seconds integer CHECK (declined_for_seconds BETWEEN 0 AND 86400),
    -- When a person withdrew the decline. It then no longer applies to later requests.
    ADD COLUMN reopened_at timestamptz,
    -- Why the request is void, if no person made it void.
    ADD COLUMN void_reason text;
CALL grant_to('{tenant}', 'UPDATE (declined_at, declined_for_seconds, reopened_at, void_reason) ON approvals');
CALL grant_to('{recorder}', 'SELECT (subject, created_at, updated_at, declined_at, declined_for_seconds, reopened_at) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (void_reason) ON approvals');

-- Returns until when the same request is denied after a decline: for the tenant's setting or, if
-- there is none, as long as the request could have waited, at most a day. The time set by the
-- person who declined it applies if it is shorter.
CREATE FUNCTION declined_until(
    declined timestamptz, opened timestamptz, expires timestamptz, shorter integer, setting integer
) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT declined + make_interval(secs => least(
        86400, shorter, coalesce(setting, extract(epoch FROM expires - opened)))::double precision)
$$;

-- ## Requests made by an API key

CREATE TABLE approval_askers (
    key_id text COLLATE "C" NOT NULL,
    -- The approval request's time, because lists are ordered by time.
    created_at timestamptz NOT NULL,
    approval_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (key_id, created_at, approval_id)
);
CALL guard('approval_askers');
CALL grant_to('{tenant}', 'SELECT ON approval_askers');
CALL grant_to('{recorder,system}', 'INSERT ON approval_askers');

-- This is a trigger and not code of the service, because nodes of the previous release also open
-- requests.
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

-- As in migration 28, except for requests that the service made void: no person has withdrawn them.
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
-- Notifies at most once an hour for each agent. The caller has locked the agent. Two of its
-- decisions can therefore not notify at the same time.
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
