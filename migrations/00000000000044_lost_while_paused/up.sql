-- If an endpoint is paused on request and its key or person then loses access, its `state_reason`
-- changes. The person who enables the endpoint should see this.

CREATE OR REPLACE FUNCTION pause_endpoints_of_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhook_endpoints
    SET state = 'paused', updated_at = clock_timestamp(),
        state_reason = CASE NEW.status WHEN 'revoked' THEN 'key_revoked' ELSE 'key_narrowed' END
    WHERE tenant_id = NEW.tenant_id AND key_id = NEW.id
      AND (state = 'active' OR state = 'paused' AND state_reason = 'asked');
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION pause_endpoints_of_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhook_endpoints e
    SET state = 'paused', state_reason = 'person_inactive', updated_at = clock_timestamp()
    WHERE e.tenant_id = NEW.tenant_id AND e.person_subject IS NOT NULL
      AND (e.state = 'active' OR e.state = 'paused' AND e.state_reason = 'asked')
      AND person_excluded(e.tenant_id, e.person_subject, e.person_email);
    RETURN NULL;
END $$;
