-- Triggers and limits for reality records: versions of anchors, the rate limit of feeders, events
-- and notifications of drift.

-- ## Anchors

-- Each change of an anchor raises its version. `:verify` does not change `updated_at`, and
-- therefore does not raise it.
CREATE FUNCTION raise_anchor_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER raise_version BEFORE UPDATE ON reality_anchors
    FOR EACH ROW WHEN (NEW.updated_at <> OLD.updated_at) EXECUTE FUNCTION raise_anchor_version();

-- ## Feeders

-- The rate limit of an anchor and feeder: one snapshot per second, ten at once. This is the generic
-- cell rate algorithm. Its state is the time at which the next snapshot would be due. All nodes
-- share the state.
CREATE TABLE reality_feeding (
    anchor_id text COLLATE "C" NOT NULL,
    feeder_key_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    due_at timestamptz NOT NULL,
    PRIMARY KEY (anchor_id, feeder_key_id)
) WITH (fillfactor = 50);
CALL guard('reality_feeding');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE ON reality_feeding');

-- ## Drift

CREATE FUNCTION announce_drift() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kind text;
    reason text;
    actor CONSTANT text := event_actor(NEW.tenant_id);
    about jsonb := jsonb_build_object('drift_event_id', NEW.id);
BEGIN
    IF TG_OP = 'INSERT' THEN
        kind := 'svc.reality.drift_detected';
        reason := NEW.drift_type;
        about := about || jsonb_build_object(
            'check_id', NEW.check_id, 'drift_type', NEW.drift_type, 'severity', NEW.severity,
            'recommended_runtime_effect', NEW.recommended_runtime_effect,
            'anchors', cardinality(NEW.anchors_implicated));
        PERFORM notify_people(
            'reality.drift_detected', NEW.tenant_id, '{admin,auditor}', NEW.id,
            jsonb_build_object('drift_event_id', NEW.id, 'check_id', NEW.check_id,
                               'drift_type', NEW.drift_type, 'severity', NEW.severity));
    ELSIF NEW.status IN ('acknowledged', 'quarantined') THEN
        kind := 'svc.recovery.started';
        about := about || jsonb_build_object(
            'check_id', NEW.check_id, 'drift_type', NEW.drift_type, 'severity', NEW.severity,
            'step', NEW.status,
            'quarantine_id', CASE NEW.status WHEN 'quarantined' THEN NEW.quarantine_id END);
    ELSIF NEW.status = 'escalated' OR NEW.resolution = 'revoked' THEN
        kind := 'svc.recovery.failed';
        about := about || jsonb_build_object(
            'check_id', NEW.check_id, 'step', NEW.resolution,
            'delegation_id', NEW.acts[cardinality(NEW.acts)] ->> 'delegation_id');
    ELSIF NEW.status = 'resolved' THEN
        kind := 'svc.recovery.completed';
        about := about || jsonb_build_object('step', NEW.resolution);
        IF NEW.resolution = 'recoupled' THEN
            PERFORM announce(
                'svc.reality.recoupled', NEW.tenant_id, NEW.id, NEW.id, actor,
                coalesce(NEW.actor_entity_id, NEW.subject_id), NULL,
                jsonb_build_object(
                    'drift_event_id', NEW.id, 'check_id', NEW.check_id,
                    'drift_type', NEW.drift_type, 'coupling_result', c.coupling_result))
            FROM reality_coupling_checks c WHERE c.id = NEW.check_id;
        END IF;
    ELSE
        RETURN NULL;
    END IF;
    PERFORM announce(kind, NEW.tenant_id, NEW.id, NEW.id, actor,
                     coalesce(NEW.actor_entity_id, NEW.subject_id), reason, about);
    RETURN NULL;
END $$;
CREATE TRIGGER announce_detected AFTER INSERT ON stable_drift_events
    FOR EACH ROW EXECUTE FUNCTION announce_drift();
-- Also runs if only the quarantine changes.
CREATE TRIGGER announce_moved AFTER UPDATE OF status, quarantine_id ON stable_drift_events
    FOR EACH ROW WHEN ((OLD.status, OLD.quarantine_id) IS DISTINCT FROM (NEW.status, NEW.quarantine_id))
    EXECUTE FUNCTION announce_drift();
