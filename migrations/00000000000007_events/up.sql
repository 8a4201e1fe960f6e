-- Events: changes, in an order that each tenant's receivers can rely on.
--
-- A change writes a row into event_outbox in its own transaction. Therefore exactly the committed
-- changes become events. The sequencer takes those rows in order, raises the tenant's sequence and
-- writes the event's bytes (RFC 8785) into events. All outgoing data is read by cursors on that
-- table.

-- ## Events on demand

-- Some events are too costly to write without a receiver: each permitted and each denied decision,
-- and each pack that is sealed without a request. They are written only while an endpoint, a stream
-- or an audit stream selects them. Each of these has a row here. The row is part of the tenant's
-- authority: after the call that created it has returned, every decision has its event.
CREATE TABLE event_demands (
    -- The id of the endpoint or of the audit stream; a new id for a stream.
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    event_types text[] NOT NULL CHECK (event_types <> '{}'),
    -- When the row expires unless it is renewed. Set only for streams.
    until timestamptz
);
CREATE INDEX event_demands_tenant ON event_demands (tenant_id);
CALL govern('event_demands', true, quiet => '{until}');
-- These rows have no history, because the history of the endpoint's record contains the changes.
DROP TRIGGER keep_version ON event_demands;

-- ## The outbox

-- A row has one event, or the events of the decisions that the recorder stored for a tenant in one
-- batch.
CREATE TABLE event_outbox (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    event_type text COLLATE "C",
    -- The id of the event's subject.
    subject_ref text COLLATE "C",
    correlation_id text COLLATE "C",
    -- The principal or the API key that made the change. NULL for a person who is not a principal.
    actor_entity_id text COLLATE "C",
    principal_entity_id text COLLATE "C",
    reason_code text COLLATE "C",
    occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Ids, codes, states, counts and times, but never text that a caller wrote.
    data jsonb NOT NULL DEFAULT '{}',
    -- The content of the decisions' events, as JSON, in order. All other columns of the row are
    -- then NULL or have their default.
    decisions text[],
    -- The number of events in the row.
    size integer NOT NULL DEFAULT 1 CHECK (size > 0),
    CONSTRAINT event_outbox_kind CHECK (
        CASE WHEN decisions IS NULL THEN num_nulls(event_type, subject_ref) = 0
             ELSE num_nonnulls(event_type, subject_ref) = 0 END)
);
CREATE INDEX event_outbox_tenant ON event_outbox (tenant_id, number);
CALL guard('event_outbox');
CALL grant_to('{tenant,recorder}', 'INSERT ON event_outbox');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON event_outbox');

-- Migrations run in the owner's role. If they change records, they also write events.
CREATE POLICY bookkeeping ON event_outbox TO CURRENT_USER USING (true);

-- Returns the principal or key behind the current transaction. A person is found by subject or
-- address.
CREATE FUNCTION event_actor(tenant text) RETURNS text LANGUAGE sql STABLE AS $$
    WITH present AS (SELECT nullif(current_setting('authority.actor', true), '') AS actor)
    SELECT CASE WHEN starts_with(actor, 'svc:') THEN actor ELSE (
        SELECT min(p.id) FROM principals p
        WHERE p.tenant_id = tenant AND (p.external_subject = actor OR lower(p.email) = lower(actor))
        HAVING count(*) = 1) END
    FROM present
$$;

-- Formats a time as RFC 3339.
CREATE FUNCTION event_time(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- Writes an event into the outbox. Row-level security ensures that a tenant's role can write only
-- the tenant's own events.
CREATE FUNCTION announce(
    event_type text, tenant text, subject text, correlation text, actor text, principal text,
    reason text, data jsonb, at timestamptz DEFAULT clock_timestamp()
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event_outbox (event_type, tenant_id, subject_ref, correlation_id, actor_entity_id,
                              principal_entity_id, reason_code, occurred_at, data)
    VALUES (event_type, tenant, subject, correlation, actor, principal, reason, at,
            jsonb_strip_nulls(data));
    -- The recorder wakes its own node after the commit, since commits with a NOTIFY wait for one another.
    -- Equal notifications are sent once in each transaction.
    IF current_setting('role') <> authority_role('recorder') THEN
        PERFORM pg_notify('event_outbox', '');
    END IF;
END $$;

-- ## The log of events

CREATE TABLE event_heads (
    tenant_id text COLLATE "C" PRIMARY KEY REFERENCES tenants,
    -- The sequence of the last event. Sequences count from 1 without gaps.
    sequence bigint NOT NULL CHECK (sequence >= 0),
    -- The sequence of the oldest event that is kept.
    oldest bigint NOT NULL DEFAULT 1
);
CALL guard('event_heads');
CALL grant_to('{tenant}', 'SELECT ON event_heads');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE (sequence, oldest) ON event_heads');

-- A row has up to 64 consecutive events of a tenant. With a row for each event, an event would take
-- 1.1 kB of write-ahead log and two index entries, more than half of what its decision takes.
CREATE TABLE events (
    -- The id of the row's first event: `svc:event:<UUIDv7>`, which starts with the time at which the
    -- event was numbered. In a row with several events, the last four digits of an event's id are its
    -- place in the row, as a hexadecimal number: 0000 for the first.
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    last_sequence bigint NOT NULL,
    -- All types of the events, with spaces between them.
    event_types text COLLATE "C" NOT NULL,
    -- The exact bytes of the events' envelopes (RFC 8785) in order, with line feeds between them, which
    -- canonical JSON does not contain.
    bodies bytea NOT NULL,
    -- The number of events in the row.
    size integer NOT NULL DEFAULT 1
) PARTITION BY RANGE (id);
CREATE INDEX events_by_sequence ON events (tenant_id, last_sequence);
CALL guard('events');
CALL grant_to('{tenant}', 'SELECT ON events');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON events');

-- The envelopes in a row of events are similar to each other, like the decisions in a row of the
-- outbox. lz4 makes both five to ten times smaller, in less time than writing the bytes would take.
-- PostgreSQL 14 and later have lz4 if they were built with it. Without lz4, pglz compresses events. The
-- outbox then stays uncompressed, because its values are read once and then deleted.
ALTER TABLE event_outbox ALTER COLUMN decisions SET STORAGE EXTERNAL;
DO $$
BEGIN
    EXECUTE 'ALTER TABLE events ALTER COLUMN bodies SET COMPRESSION lz4';
    EXECUTE 'ALTER TABLE event_outbox ALTER COLUMN decisions SET COMPRESSION lz4';
    ALTER TABLE event_outbox ALTER COLUMN decisions SET STORAGE EXTENDED;
EXCEPTION WHEN feature_not_supported OR syntax_error THEN
    RAISE NOTICE 'this PostgreSQL has no lz4: events take more space';
END $$;
CALL partition_by_time('events', 'svc:event:', 'week');

-- ## The event of each change

-- Returns how many delegations are below a delegation, and are therefore affected if it changes.
CREATE FUNCTION delegations_below(tenant text, delegation text) RETURNS integer LANGUAGE sql STABLE AS $$
    WITH RECURSIVE below (id) AS (
        SELECT d.id FROM delegations d WHERE d.tenant_id = tenant AND d.parent_id = delegation
            AND d.state <> 'revoked'
        UNION ALL
        SELECT d.id FROM delegations d JOIN below ON d.parent_id = below.id
        WHERE d.tenant_id = tenant AND d.state <> 'revoked')
    SELECT count(*)::integer FROM below
$$;

-- A renewal is announced as the successor, with its line. The end of the renewed delegation, and the
-- new parent of the delegations below, are not announced, because no authority ends. Erasing the
-- creator of a delegation is not announced as narrowing the delegation.
CREATE FUNCTION announce_delegation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- The columns that can change without narrowing the delegation.
    plain CONSTANT text[] := '{created_by,state,standing,notes,tags,metadata,revoked_at,revoke_reason,updated_at,parent_id,renewed_by}';
    kind text;
    reason text;
    below integer;
BEGIN
    IF TG_OP = 'INSERT' THEN
        kind := CASE WHEN NEW.parent_id IS NULL THEN 'granted' ELSE 'attenuated' END;
    ELSIF NEW.renewed_by IS DISTINCT FROM OLD.renewed_by THEN
        RETURN NULL;
    ELSIF NEW.state <> OLD.state THEN
        kind := CASE NEW.state WHEN 'active' THEN 'reinstated' ELSE NEW.state END;
        reason := CASE NEW.state WHEN 'active' THEN NULL ELSE 'delegation_' || NEW.state END;
    ELSIF to_jsonb(NEW) - plain <> to_jsonb(OLD) - plain THEN
        kind := 'attenuated';
    ELSE
        RETURN NULL;
    END IF;
    IF NEW.state <> OLD.state THEN
        below := delegations_below(NEW.tenant_id, NEW.id);
    END IF;
    PERFORM announce(
        'svc.authority.' || kind, NEW.tenant_id, NEW.id, NEW.root_id, event_actor(NEW.tenant_id),
        NEW.delegate_id, reason,
        CASE
            WHEN kind = 'granted' THEN jsonb_build_object(
                'delegation_id', NEW.id, 'root_id', NEW.root_id, 'delegator_id', NEW.delegator_id,
                'delegate_id', NEW.delegate_id, 'can_delegate', NEW.can_delegate,
                'not_before', event_time(NEW.not_before), 'expires_at', event_time(NEW.expires_at),
                'line_id', NEW.line_id)
            WHEN kind = 'attenuated' THEN jsonb_build_object(
                'delegation_id', NEW.id, 'root_id', NEW.root_id, 'parent_id', NEW.parent_id,
                'change', CASE TG_OP WHEN 'INSERT' THEN 'delegated' ELSE 'narrowed' END,
                'delegator_id', NEW.delegator_id, 'delegate_id', NEW.delegate_id,
                'depth', NEW.depth, 'expires_at', event_time(NEW.expires_at),
                'line_id', NEW.line_id)
            WHEN kind = 'revoked' THEN jsonb_build_object(
                'kind', 'delegation', 'authority_id', NEW.id, 'root_id', NEW.root_id,
                'holder_id', NEW.delegate_id, 'below', below)
            ELSE jsonb_build_object(
                'delegation_id', NEW.id, 'root_id', NEW.root_id, 'delegate_id', NEW.delegate_id,
                'below', below)
        END);
    RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT OR UPDATE ON delegations
    FOR EACH ROW EXECUTE FUNCTION announce_delegation();

-- Rows of `uses`, acts_in and granted_access_to. Arguments: the columns of the holder and of the
-- target. The target is the id of a record of the tenant, or an action pattern. A pattern is left
-- out of the event, because a caller wrote it.
CREATE FUNCTION announce_capability() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed jsonb := to_jsonb(CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END);
    kind text;
    what text := changed ->> TG_ARGV[1];
BEGIN
    IF TG_OP = 'INSERT' THEN
        kind := 'svc.capability.granted';
    ELSE
        kind := 'svc.authority.revoked';
    END IF;
    PERFORM announce(
        kind, changed ->> 'tenant_id', changed ->> 'id', NULL,
        event_actor(changed ->> 'tenant_id'), changed ->> TG_ARGV[0], NULL,
        jsonb_build_object(
            'kind', TG_TABLE_NAME, 'authority_id', changed -> 'id',
            'holder_id', changed -> TG_ARGV[0])
        || CASE kind
            WHEN 'svc.capability.granted' THEN jsonb_build_object(
                'target_id', CASE WHEN changed ->> 'used_kind' IS DISTINCT FROM 'action' THEN what END,
                'access_level', changed -> 'access_level',
                -- NULL means permitted: it is the default of `uses`, and other kinds have no such column.
                'allowed', coalesce((changed ->> 'allowed')::integer, 1) = 1,
                'not_before', event_time((changed ->> 'since')::timestamptz),
                'expires_at', event_time((changed ->> 'until')::timestamptz))
            ELSE '{"below": 0}' END);
    RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT OR DELETE ON uses
    FOR EACH ROW EXECUTE FUNCTION announce_capability('agent_id', 'used_id');
CREATE TRIGGER announce AFTER INSERT OR DELETE ON acts_in
    FOR EACH ROW EXECUTE FUNCTION announce_capability('principal_id', 'workspace_id');
CREATE TRIGGER announce AFTER INSERT OR DELETE ON granted_access_to
    FOR EACH ROW EXECUTE FUNCTION announce_capability('grantee_id', 'resource_id');

-- A changed grant is announced as it is now. Arguments: the columns of the holder and of the target,
-- as above.
CREATE FUNCTION announce_changed_grant() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed CONSTANT jsonb := to_jsonb(NEW);
BEGIN
    PERFORM announce(
        'svc.capability.granted', NEW.tenant_id, NEW.id, NULL, event_actor(NEW.tenant_id),
        changed ->> TG_ARGV[0], NULL,
        jsonb_build_object(
            'kind', TG_TABLE_NAME, 'authority_id', NEW.id, 'holder_id', changed -> TG_ARGV[0],
            'target_id', CASE WHEN changed ->> 'used_kind' IS DISTINCT FROM 'action'
                              THEN changed ->> TG_ARGV[1] END,
            'allowed', coalesce((changed ->> 'allowed')::integer, 1) = 1,
            'not_before', event_time(NEW.since), 'expires_at', event_time(NEW.until)));
    RETURN NULL;
END $$;
CREATE TRIGGER announce_change AFTER UPDATE OF since, until, constraints_json ON uses
    FOR EACH ROW
    WHEN ((OLD.since, OLD.until, OLD.constraints_json)
          IS DISTINCT FROM (NEW.since, NEW.until, NEW.constraints_json))
    EXECUTE FUNCTION announce_changed_grant('agent_id', 'used_id');
CREATE TRIGGER announce_change AFTER UPDATE OF since, until ON acts_in
    FOR EACH ROW WHEN ((OLD.since, OLD.until) IS DISTINCT FROM (NEW.since, NEW.until))
    EXECUTE FUNCTION announce_changed_grant('principal_id', 'workspace_id');

-- The pin of an MCP server's tool. A tool that drifts again, to a third definition, is not announced
-- again.
CREATE FUNCTION announce_pin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM announce(
        'svc.tool.' || (NEW.mcp ->> 'pin'), NEW.tenant_id, NEW.id, NULL, event_actor(NEW.tenant_id),
        NULL, NULL,
        jsonb_build_object(
            'tool_id', NEW.id, 'server_id', NEW.mcp -> 'server_id',
            'definition_digest', NEW.mcp -> 'definition_digest')
        || CASE NEW.mcp ->> 'pin'
            WHEN 'drifted' THEN jsonb_build_object('seen_digest', NEW.mcp -> 'seen_digest')
            ELSE '{}' END);
    RETURN NULL;
END $$;
CREATE TRIGGER announce_pin AFTER UPDATE OF mcp ON tools
    FOR EACH ROW
    WHEN (NEW.mcp ->> 'pin' IN ('pinned', 'drifted')
          AND (OLD.mcp ->> 'pin', OLD.mcp ->> 'definition_digest')
              IS DISTINCT FROM (NEW.mcp ->> 'pin', NEW.mcp ->> 'definition_digest'))
    EXECUTE FUNCTION announce_pin();

-- Removing a bound from an API key or a purpose is an event, because the key or purpose then permits
-- more. Arguments: the kind of record, and the columns with its bounding lists. An empty list is no
-- bound.
CREATE FUNCTION announce_unbound() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was jsonb := to_jsonb(OLD);
    present jsonb := to_jsonb(NEW);
    bound text;
BEGIN
    FOREACH bound IN ARRAY TG_ARGV[1:] LOOP
        IF was -> bound <> '[]' AND present -> bound = '[]' THEN
            PERFORM announce(
                'svc.capability.granted', NEW.tenant_id, NEW.id, NULL, event_actor(NEW.tenant_id),
                NULL, NULL,
                jsonb_build_object('kind', TG_ARGV[0], 'authority_id', NEW.id, 'holder_id', NEW.id,
                                   'allowed', true, 'unbound', bound));
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER announce_unbound AFTER UPDATE OF principal_ids, ip_allowlist ON api_keys
    FOR EACH ROW WHEN (OLD.principal_ids <> NEW.principal_ids OR OLD.ip_allowlist <> NEW.ip_allowlist)
    EXECUTE FUNCTION announce_unbound('api_key', 'principal_ids', 'ip_allowlist');
CREATE TRIGGER announce_unbound AFTER UPDATE OF principal_classes, jurisdictions ON purposes
    FOR EACH ROW
    WHEN (OLD.principal_classes <> NEW.principal_classes OR OLD.jurisdictions <> NEW.jurisdictions)
    EXECUTE FUNCTION announce_unbound('purpose', 'principal_classes', 'jurisdictions');

-- Policies on the local time apply at other times after a change of the time zone.
CREATE FUNCTION announce_time_zone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM announce(
        'svc.tenant.changed', NEW.id, NEW.id, NULL, event_actor(NEW.id), NULL, NULL,
        jsonb_build_object('setting', 'time_zone', 'before', OLD.time_zone, 'after', NEW.time_zone));
    RETURN NULL;
END $$;
CREATE TRIGGER announce_time_zone AFTER UPDATE OF time_zone ON tenants
    FOR EACH ROW WHEN (OLD.time_zone <> NEW.time_zone)
    EXECUTE FUNCTION announce_time_zone();

-- The recorder opens approval requests and lets them expire. Its role can't read principals, and
-- these events have no actor. If the service made a request void, it does not count as withdrawn.
CREATE FUNCTION announce_approval() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER announce_opened AFTER INSERT ON approvals
    FOR EACH ROW EXECUTE FUNCTION announce_approval();
CREATE TRIGGER announce_moved AFTER UPDATE OF state ON approvals
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION announce_approval();

CREATE FUNCTION announce_stop() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    stopped integer;
BEGIN
    IF TG_OP = 'INSERT' THEN
        WITH RECURSIVE chained (id) AS (
            SELECT d.id FROM delegations d
            WHERE d.tenant_id = NEW.tenant_id AND NEW.actor_id IN (d.delegator_id, d.delegate_id)
            UNION
            SELECT d.id FROM delegations d JOIN chained ON d.parent_id = chained.id
            WHERE d.tenant_id = NEW.tenant_id)
        SELECT count(*) INTO stopped FROM chained;
    END IF;
    PERFORM announce(
        CASE TG_OP WHEN 'INSERT' THEN 'svc.actor.stopped' ELSE 'svc.recovery.completed' END,
        NEW.tenant_id, NEW.id, NULL, event_actor(NEW.tenant_id), NEW.actor_id,
        CASE TG_OP WHEN 'INSERT' THEN 'actor_stopped' END,
        jsonb_build_object('stop_signal_id', NEW.id, 'actor_id', NEW.actor_id)
        || CASE TG_OP WHEN 'INSERT' THEN jsonb_build_object('delegations', stopped)
                      ELSE '{"step": "stop_lifted"}' END);
    RETURN NULL;
END $$;
CREATE TRIGGER announce_stopped AFTER INSERT ON stop_signals
    FOR EACH ROW EXECUTE FUNCTION announce_stop();
CREATE TRIGGER announce_lifted AFTER UPDATE OF state ON stop_signals
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION announce_stop();

CREATE FUNCTION announce_quarantine() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM announce(
        CASE TG_OP WHEN 'INSERT' THEN 'svc.capability.quarantined' ELSE 'svc.capability.released' END,
        NEW.tenant_id, NEW.id, NULL, event_actor(NEW.tenant_id), NEW.subject_id,
        CASE TG_OP WHEN 'INSERT' THEN 'capability_quarantined' END,
        jsonb_build_object('quarantine_id', NEW.id, 'subject_id', NEW.subject_id,
                           'delegation_id', NEW.delegation_id)
        || CASE TG_OP WHEN 'INSERT' THEN jsonb_build_object('of_actions', NEW.action IS NOT NULL)
                      ELSE '{}' END);
    RETURN NULL;
END $$;
CREATE TRIGGER announce_quarantined AFTER INSERT ON quarantines
    FOR EACH ROW EXECUTE FUNCTION announce_quarantine();
CREATE TRIGGER announce_released AFTER UPDATE OF state ON quarantines
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION announce_quarantine();

-- Thousands of packs can be sealed in one statement. The trigger runs once for all of them.
CREATE FUNCTION announce_packs() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kind CONSTANT text := 'svc.evidence_pack.generated';
BEGIN
    PERFORM announce(
        kind, p.tenant_id, p.evidence_id, p.decision_id, event_actor(p.tenant_id), NULL, NULL,
        jsonb_build_object('evidence_id', p.evidence_id, 'decision_id', p.decision_id,
                           'automatic', p.automatic, 'log_index', p.log_index))
    FROM (SELECT *, 'svc:evidence:' || split_part(decision_id, ':', 3) AS evidence_id
          FROM packs ORDER BY log_index) AS p
    -- Packs that were sealed automatically become events only while a subscriber requests them.
    WHERE NOT p.automatic OR p.tenant_id IN (
        SELECT tenant_id FROM event_demands WHERE kind = ANY (event_types));
    RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT ON evidence_packs
    REFERENCING NEW TABLE AS packs FOR EACH STATEMENT EXECUTE FUNCTION announce_packs();

CREATE FUNCTION announce_replay() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    evidence text := 'svc:evidence:' || split_part(NEW.decision_id, ':', 3);
    -- On the original facts, the decision must be the same. On other facts it may differ.
    failed boolean := NEW.result = 'mismatch' AND NEW.mode = 'historical_state_snapshot';
BEGIN
    PERFORM announce(
        'svc.evidence_pack.' || CASE WHEN failed THEN 'verification_failed' ELSE 'replayed' END,
        NEW.tenant_id, evidence, NEW.decision_id, event_actor(NEW.tenant_id), NULL, NULL,
        jsonb_build_object('evidence_id', evidence, 'decision_id', NEW.decision_id)
        || CASE WHEN failed THEN '{"part": "replay"}'
                ELSE jsonb_build_object('replay_id', NEW.id, 'mode', NEW.mode,
                                        'result', NEW.result) END);
    RETURN NULL;
END $$;
CREATE TRIGGER announce AFTER INSERT ON replay_proofs
    FOR EACH ROW EXECUTE FUNCTION announce_replay();

-- ## Expiries

-- An expiry changes no row. A sweep therefore looks for expired rows, and writes the event and the
-- mark in one transaction.
CREATE TABLE announced_expiries (
    id text COLLATE "C" NOT NULL,
    expired_at timestamptz NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, expired_at)
);
CREATE INDEX announced_expiries_by_age ON announced_expiries (expired_at);
CALL guard('announced_expiries');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON announced_expiries');

-- The time up to which all expiries were announced.
CREATE TABLE expiry_sweep (
    sole boolean PRIMARY KEY DEFAULT true CHECK (sole),
    until timestamptz NOT NULL
);
INSERT INTO expiry_sweep (until) VALUES (now());
CALL grant_to('{system}', 'SELECT, UPDATE ON expiry_sweep');

-- Announces at most `most` expiries and returns their number. The hour before the last sweep is
-- checked again, because a row that expired in that hour may have been committed after the sweep.
CREATE FUNCTION announce_expiries(most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    looked_from timestamptz;
    until_now CONSTANT timestamptz := clock_timestamp();
    announced integer;
BEGIN
    -- One node at a time.
    SELECT until - interval '1 hour' INTO looked_from FROM expiry_sweep FOR UPDATE SKIP LOCKED;
    IF looked_from IS NULL THEN
        RETURN 0;
    END IF;
    WITH due (id, expired_at, tenant_id, kind, root_id, holder_id) AS (
        SELECT id, expires_at, tenant_id, 'delegation', root_id, delegate_id FROM delegations
        WHERE state <> 'revoked' AND expires_at > looked_from AND expires_at <= until_now
        UNION ALL
        SELECT id, until, tenant_id, 'uses', NULL, agent_id FROM uses
        WHERE until > looked_from AND until <= until_now
        UNION ALL
        SELECT id, until, tenant_id, 'acts_in', NULL, principal_id FROM acts_in
        WHERE until > looked_from AND until <= until_now
    ), fresh AS (
        SELECT due.* FROM due
        WHERE NOT EXISTS (SELECT FROM announced_expiries a
                          WHERE (a.id, a.expired_at) = (due.id, due.expired_at))
        ORDER BY due.expired_at, due.id LIMIT most
    ), marked AS (
        INSERT INTO announced_expiries SELECT id, expired_at, tenant_id FROM fresh
    ), told AS MATERIALIZED (
        SELECT announce(
            'svc.authority.expired', tenant_id, id, root_id, NULL, holder_id,
            CASE kind WHEN 'delegation' THEN 'delegation_expired' ELSE 'permission_missing' END,
            jsonb_build_object(
                'kind', kind, 'authority_id', id, 'root_id', root_id, 'holder_id', holder_id,
                'below', CASE kind WHEN 'delegation' THEN delegations_below(tenant_id, id) ELSE 0 END),
            expired_at)
        FROM fresh)
    SELECT count(*) INTO announced FROM told;
    IF announced < most THEN
        UPDATE expiry_sweep SET until = until_now;
        DELETE FROM announced_expiries WHERE expired_at < looked_from;
    END IF;
    RETURN announced;
END $$;
CALL grant_to('{system}', 'EXECUTE ON FUNCTION announce_expiries');
