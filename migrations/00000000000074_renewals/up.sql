-- Renewals. A renewed delegation has a successor, usually with a later end. Both belong to one line,
-- which shares its counters.

ALTER TABLE delegations
    -- The first delegation of the line. NULL for the first one itself.
    ADD COLUMN line_id text COLLATE "C",
    -- The successor.
    ADD COLUMN renewed_by text COLLATE "C";

-- The period and the bounds of these can change.
ALTER TABLE uses ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE acts_in ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE member_of ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();

-- ## Counters

-- The function below writes counters as their owner.
CREATE POLICY bookkeeping ON counters TO CURRENT_USER USING (true);

-- Lets a holder's counter for another length of window begin with the most that was used in any of
-- its windows that are under way. Otherwise the holder would have a second budget. The function only
-- raises counters. Call it while authority can't change: a decision would otherwise count in the old
-- window only.
CREATE FUNCTION carry_counter(
    tenant text, holder text, kind text, window_length integer, at timestamptz
) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    INSERT INTO counters (tenant_id, holder_id, counts, window_seconds, window_start, used)
    SELECT tenant, holder, kind, window_length,
           floor(extract(epoch FROM at) / window_length)::bigint * window_length, max(used)
    FROM counters
    WHERE tenant_id = tenant AND holder_id = holder AND counts = kind
      AND window_start + window_seconds > extract(epoch FROM at)
      AND (may_see(tenant) OR current_setting('role') = authority_role('system'))
    HAVING max(used) > 0
    ON CONFLICT (tenant_id, holder_id, counts, window_seconds, window_start)
    DO UPDATE SET used = greatest(counters.used, EXCLUDED.used)
$$;
REVOKE EXECUTE ON FUNCTION carry_counter FROM PUBLIC;
CALL grant_to('{tenant,system}', 'EXECUTE ON FUNCTION carry_counter');

-- ## Events

-- As in migration 42, except for renewals: the successor is announced, with its line. The end of the
-- renewed delegation and the new parent of those below it are not, because no authority ends.
CREATE OR REPLACE FUNCTION announce_delegation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- What does not narrow it.
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

-- A changed grant is announced as it is now. Arguments: the columns of the holder and of the target,
-- as in migration 28.
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
