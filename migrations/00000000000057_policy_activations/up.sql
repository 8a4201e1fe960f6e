-- Who activated a policy's text, when and why. `policies` has this for the active text.
-- `policy_activations` has it for every activation and is not archived.

CREATE TABLE policy_activations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    policy_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    at timestamptz NOT NULL,
    by text NOT NULL,
    reason text,
    -- If a new policy is active at once, its activation is written here before the policy itself,
    -- in one transaction.
    CONSTRAINT policy_activations_policy_id_fkey FOREIGN KEY (tenant_id, policy_id)
        REFERENCES policies (tenant_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX policy_activations_policy ON policy_activations (policy_id, at, id);
CALL append_only('policy_activations');
CALL may_erase('policy_activations', '{by,reason}');

ALTER TABLE policies
    ADD COLUMN activated_at timestamptz,
    ADD COLUMN activated_by text,
    ADD COLUMN activation_reason text;

-- Records every activation of a text. Writing `activated_at` means that a text is activated, even
-- if it is active already. If only the state or the version changes, that also means an activation,
-- because the previous release writes only these. The existing reason then belongs to an earlier
-- activation and is not copied.
CREATE FUNCTION note_activation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'active' THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.activated_at IS NOT DISTINCT FROM OLD.activated_at THEN
        IF OLD.state = 'active' AND NEW.version = OLD.version THEN
            RETURN NEW;
        END IF;
        NEW.activation_reason := NULL;
    END IF;
    NEW.activated_at := clock_timestamp();
    NEW.activated_by := coalesce(nullif(current_setting('authority.actor', true), ''),
                                 'database:' || session_user);
    INSERT INTO policy_activations (tenant_id, policy_id, version, at, by, reason)
    VALUES (NEW.tenant_id, NEW.id, NEW.version, NEW.activated_at, NEW.activated_by,
            NEW.activation_reason);
    RETURN NEW;
END $$;
CREATE TRIGGER note_activation BEFORE INSERT OR UPDATE ON policies
    FOR EACH ROW EXECUTE FUNCTION note_activation();
