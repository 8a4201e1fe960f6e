DROP FUNCTION notify_of_open_requests;
CALL revoke_from('{recorder}', 'SELECT (id, tenant_id, kind, subject_ref) ON notifications');
-- Row-level security hides all rows from the tables' owner.
CALL grant_to('{system}', 'DELETE ON notifications');
SELECT set_config('role', authority_role('system'), true);
DELETE FROM notifications WHERE kind = 'approval.limit_reached';
SELECT set_config('role', 'none', true);
CALL revoke_from('{system}', 'DELETE ON notifications');
ALTER TABLE notifications DROP CONSTRAINT notifications_kind_check;
ALTER TABLE notifications ADD CONSTRAINT notifications_kind_check CHECK (kind IN (
    'approval.opened', 'webhook_endpoint.created', 'webhook_endpoint.paused',
    'webhook_endpoint.disabled', 'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost',
    'audit_stream.failing', 'api_key.expiring', 'delegation.expiring', 'reality.drift_detected'));

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
        outcome := CASE WHEN NEW.state = 'void' AND OLD.state = 'approved' THEN 'withdrawn'
                        ELSE NEW.state END;
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

DROP TRIGGER note_askers ON approvals;
DROP FUNCTION note_askers;
DROP TABLE approval_askers;
DROP FUNCTION declined_until;
ALTER TABLE approvals
    DROP COLUMN void_reason, DROP COLUMN reopened_at, DROP COLUMN declined_for_seconds, DROP COLUMN declined_at;
ALTER TABLE tenants DROP COLUMN open_requests_per_agent, DROP COLUMN declined_for_seconds;
