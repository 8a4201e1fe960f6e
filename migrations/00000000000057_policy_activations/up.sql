-- Who put a policy's text in force, when and why. `policies` has it of the text in force, and so has the history;
-- `policy_activations` has it of every text, and is not archived.

CREATE TABLE policy_activations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    policy_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    at timestamptz NOT NULL,
    by text NOT NULL,
    reason text,
    -- A new policy that is active at once is noted before it is written, in one transaction.
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

-- Whatever puts a text in force is noted. Writing `activated_at` says that a text is activated, even if it is in
-- force already; a new state or version says so too, since the release before this one writes nothing else, and
-- then the reason that is there is that of an earlier activation.
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
