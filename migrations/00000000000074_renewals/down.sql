DROP TRIGGER announce_change ON acts_in;
DROP TRIGGER announce_change ON uses;
DROP FUNCTION announce_changed_grant;
CREATE OR REPLACE FUNCTION announce_delegation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- What does not narrow it.
    plain CONSTANT text[] := '{created_by,state,standing,notes,tags,metadata,revoked_at,revoke_reason,updated_at}';
    kind text;
    reason text;
    below integer;
BEGIN
    IF TG_OP = 'INSERT' THEN
        kind := CASE WHEN NEW.parent_id IS NULL THEN 'granted' ELSE 'attenuated' END;
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
                'not_before', event_time(NEW.not_before), 'expires_at', event_time(NEW.expires_at))
            WHEN kind = 'attenuated' THEN jsonb_build_object(
                'delegation_id', NEW.id, 'root_id', NEW.root_id, 'parent_id', NEW.parent_id,
                'change', CASE TG_OP WHEN 'INSERT' THEN 'delegated' ELSE 'narrowed' END,
                'delegator_id', NEW.delegator_id, 'delegate_id', NEW.delegate_id,
                'depth', NEW.depth, 'expires_at', event_time(NEW.expires_at))
            WHEN kind = 'revoked' THEN jsonb_build_object(
                'kind', 'delegation', 'authority_id', NEW.id, 'root_id', NEW.root_id,
                'holder_id', NEW.delegate_id, 'below', below)
            ELSE jsonb_build_object(
                'delegation_id', NEW.id, 'root_id', NEW.root_id, 'delegate_id', NEW.delegate_id,
                'below', below)
        END);
    RETURN NULL;
END $$;
DROP FUNCTION carry_counter;
DROP POLICY bookkeeping ON counters;
ALTER TABLE delegations DROP COLUMN line_id, DROP COLUMN renewed_by;
ALTER TABLE member_of DROP COLUMN updated_at;
ALTER TABLE acts_in DROP COLUMN updated_at;
ALTER TABLE uses DROP COLUMN updated_at;
