-- Reality coupling: sources of truth that actions depend on (anchors), dated observations of them
-- (snapshots), checks, and drift.
--
-- Decisions depend on four of these tables: anchors, the newest snapshot of each (reality_heads),
-- overrides, and drift events. Decisions do not read older snapshots or checks. A snapshot that
-- does not become the newest therefore does not change the tenant's revision.

-- ## Anchors

CREATE TABLE reality_anchors (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    anchor_type text COLLATE "C" NOT NULL,
    display_name text NOT NULL,
    description text,
    status text COLLATE "C" NOT NULL CHECK (status IN ('draft', 'active', 'deprecated')),
    authority jsonb NOT NULL,
    freshness_contract jsonb,
    grounds_actions text[] NOT NULL,
    grounds_profiles text[] NOT NULL,
    source jsonb,
    tags text[] NOT NULL,
    -- The RFC 7638 thumbprints of the keys in `source`. If there are any, only snapshots signed
    -- with these keys count.
    jwk_thumbprints text[] NOT NULL DEFAULT '{}',
    -- The result of the last `:verify`.
    verification jsonb,
    deprecate_reason text,
    version integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    UNIQUE (tenant_id, id)
);
CREATE INDEX reality_anchors_page ON reality_anchors (tenant_id, created_at, id);
CREATE INDEX reality_anchors_page_all ON reality_anchors (created_at, id);
CREATE INDEX reality_anchors_active ON reality_anchors (tenant_id)
    WHERE status = 'active' AND deleted_at IS NULL;
CREATE INDEX reality_anchors_feeders ON reality_anchors USING gin ((source -> 'feeder_key_ids'));
CALL govern('reality_anchors', true, quiet => '{verification}');

-- Each change of an anchor raises the anchor's version. `:verify` does not change `updated_at`, and
-- therefore does not raise the version.
CREATE FUNCTION raise_anchor_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER raise_version BEFORE UPDATE ON reality_anchors
    FOR EACH ROW WHEN (NEW.updated_at <> OLD.updated_at) EXECUTE FUNCTION raise_anchor_version();

-- ## Snapshots

CREATE TABLE reality_snapshots (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    anchor_id text COLLATE "C" NOT NULL,
    anchor_type text COLLATE "C" NOT NULL,
    sampled_at timestamptz NOT NULL,
    valid_until timestamptz,
    source_version text,
    content_hash text NOT NULL,
    content_summary jsonb,
    content_ref text,
    freshness jsonb,
    observations jsonb[] NOT NULL,
    -- The digest of the observations: `sha256:` and hex of their RFC 8785 form. The digest is kept
    -- when the observations are erased.
    observations_hash text,
    tags text[] NOT NULL,
    signature jsonb,
    -- The thumbprint of the anchor's key that signed the snapshot.
    signed_by text COLLATE "C",
    -- The API key that delivered the snapshot; NULL if the owner did.
    feeder_key_id text COLLATE "C",
    verification jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    UNIQUE (tenant_id, id),
    CHECK (valid_until > sampled_at),
    CONSTRAINT reality_snapshots_anchor_id_fkey FOREIGN KEY (tenant_id, anchor_id)
        REFERENCES reality_anchors (tenant_id, id)
);
CREATE UNIQUE INDEX reality_snapshots_once ON reality_snapshots (anchor_id, sampled_at DESC, content_hash)
    WHERE deleted_at IS NULL;
CREATE INDEX reality_snapshots_page ON reality_snapshots (tenant_id, created_at, id);
CREATE INDEX reality_snapshots_page_all ON reality_snapshots (created_at, id);
CREATE INDEX reality_snapshots_sampled ON reality_snapshots (tenant_id, sampled_at);
CREATE INDEX reality_snapshots_observed ON reality_snapshots (tenant_id, sampled_at)
    WHERE observations <> '{}' OR content_summary IS NOT NULL OR content_ref IS NOT NULL;
-- Snapshots have no history, because they are observations and not records that people change.
CALL guard('reality_snapshots');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE ON reality_snapshots');

-- The newest valid snapshot of each anchor, on which decisions depend. Only the triggers below
-- write this table.
CREATE TABLE reality_heads (
    -- The anchor's id.
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    -- NULL if no snapshot is valid.
    snapshot_id text COLLATE "C",
    sampled_at timestamptz,
    valid_until timestamptz,
    content_hash text,
    -- Whether another valid snapshot has the same time and a different hash.
    contested boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL,
    CHECK ((snapshot_id IS NULL) = (sampled_at IS NULL AND content_hash IS NULL)),
    CONSTRAINT reality_heads_id_fkey FOREIGN KEY (tenant_id, id) REFERENCES reality_anchors (tenant_id, id)
) WITH (fillfactor = 50);
CALL guard('reality_heads');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE ON reality_heads');
CREATE CONSTRAINT TRIGGER log_change AFTER INSERT OR UPDATE OR DELETE ON reality_heads
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_change('tenant_id', '{}');
INSERT INTO authority_tables VALUES ('reality_heads');

-- Whether a snapshot is valid. If a key of the anchor signed it, the anchor must still have that
-- key; otherwise the anchor must have no keys. The API key that delivered the snapshot must still
-- be permitted to feed the anchor.
CREATE FUNCTION reality_counts(
    tenant text, signed_by text, feeder_key_id text, thumbprints text[], source jsonb
) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN signed_by IS NULL THEN thumbprints = '{}'
                ELSE signed_by = ANY (thumbprints) END
       AND (feeder_key_id IS NULL
            OR coalesce(source -> 'feeder_key_ids' ? feeder_key_id, false)
               AND EXISTS (SELECT FROM api_keys k
                           WHERE k.id = feeder_key_id AND k.tenant_id = tenant
                             AND k.status = 'active'))
$$;

-- Updates each anchor's head to its newest valid snapshot. The anchors are locked first, always in
-- the same order. The snapshots are read in a later statement, which sees the changes that other
-- transactions committed before they released the lock.
CREATE FUNCTION settle_reality(anchors text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM reality_anchors WHERE id = ANY (anchors) ORDER BY id FOR NO KEY UPDATE;
    INSERT INTO reality_heads AS head
        (id, tenant_id, snapshot_id, sampled_at, valid_until, content_hash, contested, changed_at)
    SELECT a.id, a.tenant_id, n.id, n.sampled_at, n.valid_until, n.content_hash,
           EXISTS (
               SELECT FROM reality_snapshots o
               WHERE o.anchor_id = a.id AND o.deleted_at IS NULL AND o.sampled_at = n.sampled_at
                 AND o.content_hash <> n.content_hash
                 AND reality_counts(o.tenant_id, o.signed_by, o.feeder_key_id, a.jwk_thumbprints,
                                    a.source)),
           clock_timestamp()
    FROM reality_anchors a
    LEFT JOIN LATERAL (
        SELECT s.id, s.sampled_at, s.valid_until, s.content_hash FROM reality_snapshots s
        WHERE s.anchor_id = a.id AND s.deleted_at IS NULL
          AND reality_counts(s.tenant_id, s.signed_by, s.feeder_key_id, a.jwk_thumbprints, a.source)
        ORDER BY s.sampled_at DESC, s.content_hash LIMIT 1) n ON true
    WHERE a.id = ANY (anchors)
    ORDER BY a.id
    ON CONFLICT (id) DO UPDATE
    SET (snapshot_id, sampled_at, valid_until, content_hash, contested, changed_at) =
        (EXCLUDED.snapshot_id, EXCLUDED.sampled_at, EXCLUDED.valid_until, EXCLUDED.content_hash,
         EXCLUDED.contested, EXCLUDED.changed_at)
    WHERE (head.snapshot_id, head.contested)
        IS DISTINCT FROM (EXCLUDED.snapshot_id, EXCLUDED.contested);
END $$;

CREATE FUNCTION settle_written() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM settle_reality(ARRAY(SELECT DISTINCT anchor_id FROM written));
    RETURN NULL;
END $$;
CREATE TRIGGER settle_inserted AFTER INSERT ON reality_snapshots
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION settle_written();
CREATE TRIGGER settle_updated AFTER UPDATE ON reality_snapshots
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION settle_written();

CREATE FUNCTION settle_anchor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM settle_reality(ARRAY[NEW.id]);
    RETURN NULL;
END $$;
CREATE TRIGGER settle AFTER UPDATE OF source, jwk_thumbprints ON reality_anchors FOR EACH ROW
    WHEN (NEW.source IS DISTINCT FROM OLD.source OR NEW.jwk_thumbprints <> OLD.jwk_thumbprints)
    EXECUTE FUNCTION settle_anchor();

CREATE FUNCTION settle_feeder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM settle_reality(ARRAY(
        SELECT a.id FROM reality_anchors a
        WHERE a.tenant_id = NEW.tenant_id AND a.source -> 'feeder_key_ids' ? NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER settle AFTER UPDATE OF status ON api_keys FOR EACH ROW
    WHEN (NEW.status <> OLD.status) EXECUTE FUNCTION settle_feeder();

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

-- ## Checks

CREATE TABLE reality_coupling_checks (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    action_id text COLLATE "C" NOT NULL,
    -- The action in question and its subject. If the row refers to a decision, they are the
    -- decision's.
    action text COLLATE "C" NOT NULL,
    subject_id text COLLATE "C",
    actor_entity_id text COLLATE "C",
    principal_entity_id text COLLATE "C",
    purpose_grant_id text COLLATE "C",
    coupling_result text COLLATE "C" NOT NULL,
    runtime_effect text COLLATE "C" NOT NULL,
    result_source text COLLATE "C" NOT NULL CHECK (result_source IN ('reported', 'engine')),
    evaluated_at timestamptz,
    pipeline_node text,
    anchors_consulted text[] NOT NULL,
    assumptions jsonb[] NOT NULL,
    severity text COLLATE "C",
    reason_codes text[] NOT NULL,
    drift_event_id text COLLATE "C",
    snapshot_refs text[] NOT NULL,
    evidence_refs text[] NOT NULL,
    notes text,
    -- The findings of the last run, a list of the last runs, and the decision of a person who
    -- reviewed the check.
    findings jsonb[] NOT NULL,
    history jsonb[] NOT NULL,
    decision jsonb,
    override jsonb,
    -- [{anchor_id, drift_type, content_hash}]: drift that a person has tolerated. Later runs only
    -- warn about it.
    tolerated jsonb NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    UNIQUE (tenant_id, id)
);
CREATE INDEX reality_coupling_checks_page ON reality_coupling_checks (tenant_id, created_at, id);
CREATE INDEX reality_coupling_checks_page_all ON reality_coupling_checks (created_at, id);
CALL govern('reality_coupling_checks', quiet => '{history}');

-- Active overrides, one for each check.
CREATE TABLE reality_overrides (
    -- The check's id.
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    -- NULL if the override applies to every actor.
    actor_id text COLLATE "C",
    until timestamptz NOT NULL,
    -- [{source_id, drift_type, found: [{anchor_id, snapshot_id, contested}]}]: the exact findings
    -- of the check.
    lifts jsonb NOT NULL,
    -- The people who made the override. Each decision checks that they may still do so: if a maker
    -- has become the agent's owner or delegator since, the override does not count.
    makers jsonb NOT NULL,
    CONSTRAINT reality_overrides_id_fkey FOREIGN KEY (tenant_id, id)
        REFERENCES reality_coupling_checks (tenant_id, id)
);
CREATE INDEX reality_overrides_tenant ON reality_overrides (tenant_id);
CALL govern('reality_overrides', true);
-- Overrides have no history. The check's own record has it.
DROP TRIGGER keep_version ON reality_overrides;

-- An override applies only to the snapshot that was reviewed. If another snapshot takes its place,
-- the override ends permanently, even if that snapshot is deleted again.
CREATE FUNCTION end_overrides() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM reality_overrides
    WHERE tenant_id = NEW.tenant_id AND lifts @> jsonb_build_array(jsonb_build_object(
        'found', jsonb_build_array(jsonb_build_object('anchor_id', NEW.id))));
    RETURN NULL;
END $$;
CREATE TRIGGER end_overrides AFTER INSERT OR UPDATE ON reality_heads
    FOR EACH ROW EXECUTE FUNCTION end_overrides();

-- ## Drift

CREATE TABLE stable_drift_events (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    check_id text COLLATE "C" NOT NULL,
    action_id text COLLATE "C" NOT NULL,
    -- The action in question and its subject. If the row refers to a decision, they are the
    -- decision's.
    action text COLLATE "C" NOT NULL,
    subject_id text COLLATE "C",
    drift_type text COLLATE "C" NOT NULL,
    severity text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL
        CHECK (status IN ('open', 'acknowledged', 'escalated', 'quarantined', 'resolved')),
    result_source text COLLATE "C" NOT NULL CHECK (result_source IN ('reported', 'engine')),
    actor_entity_id text COLLATE "C",
    principal_entity_id text COLLATE "C",
    detected_at timestamptz NOT NULL,
    -- When the event's current effect started to apply, set by a trigger. Only later acts of people
    -- count as a review of it.
    applies_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    anchors_implicated text[] NOT NULL,
    expected_state jsonb,
    observed_state jsonb,
    description text,
    reason_codes text[] NOT NULL,
    -- The effect that applies until the event is resolved.
    recommended_runtime_effect text COLLATE "C" NOT NULL,
    recommended_obligations text[] NOT NULL,
    evidence_refs text[] NOT NULL,
    -- [{anchor_id, sampled_at, max_age_seconds}], only in events that the engine created because of
    -- outdated snapshots. Such an event ends when each of the anchors has a newer, fresh snapshot.
    until_fresh jsonb,
    quarantine_id text COLLATE "C",
    resolution text COLLATE "C" CHECK (resolution IN ('recoupled', 'tolerated', 'escalated', 'revoked')),
    -- Who acknowledged, quarantined and resolved the event, when and why.
    acts jsonb[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    UNIQUE (tenant_id, id),
    CONSTRAINT stable_drift_events_check_id_fkey FOREIGN KEY (tenant_id, check_id)
        REFERENCES reality_coupling_checks (tenant_id, id)
);
CREATE INDEX stable_drift_events_page ON stable_drift_events (tenant_id, created_at, id);
CREATE INDEX stable_drift_events_page_all ON stable_drift_events (created_at, id);
CREATE INDEX stable_drift_events_check_id ON stable_drift_events (check_id);
CREATE INDEX stable_drift_events_open ON stable_drift_events (tenant_id) WHERE status <> 'resolved';
CALL govern('stable_drift_events', true);

CREATE FUNCTION drift_applies_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.applies_since := clock_timestamp();
    RETURN NEW;
END $$;
CREATE TRIGGER applies_since BEFORE INSERT ON stable_drift_events
    FOR EACH ROW EXECUTE FUNCTION drift_applies_anew();
CREATE TRIGGER applies_anew BEFORE UPDATE ON stable_drift_events
    FOR EACH ROW WHEN (
        (OLD.recommended_runtime_effect, OLD.anchors_implicated, OLD.observed_state, OLD.detected_at)
        IS DISTINCT FROM
        (NEW.recommended_runtime_effect, NEW.anchors_implicated, NEW.observed_state, NEW.detected_at))
    EXECUTE FUNCTION drift_applies_anew();

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
