-- Web Push for notifications: the push subscriptions of a person's browsers, and the push cursor.

CREATE TABLE push_subscriptions (
    -- `svc:push_subscription:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    -- The person: issuer and subject.
    person text COLLATE "C" NOT NULL,
    -- The person's subject, as principals have it.
    subject text NOT NULL,
    -- The person's address in lower case.
    email text,
    -- The role in the token with which the person last subscribed. Only notifications for this role
    -- are pushed.
    role text NOT NULL,
    -- A keyed digest of the URL, and the URL sealed under the key ring
    -- (crates/core/src/keys/push_subscription.rs). Knowing the URL may be enough to push to the
    -- browser.
    endpoint_code bytea NOT NULL,
    sealed_endpoint bytea NOT NULL,
    -- The origin of the push service.
    origin text NOT NULL,
    label text,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The number of consecutive failures.
    failures integer NOT NULL DEFAULT 0,
    UNIQUE (tenant_id, person, endpoint_code)
);
CREATE INDEX push_subscriptions_role ON push_subscriptions (tenant_id, role);
-- Subscriptions have no history. A deleted subscription leaves no trace.
CALL guard('push_subscriptions');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE, DELETE ON push_subscriptions');

-- ## Deletion

CREATE FUNCTION delete_push_subscriptions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM push_subscriptions WHERE tenant_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER delete_push_subscriptions AFTER UPDATE OF state ON tenants
    FOR EACH ROW WHEN (NEW.state = 'deleted' AND OLD.state <> 'deleted')
    EXECUTE FUNCTION delete_push_subscriptions();

-- Deletes the subscriptions of a deleted person. Subscriptions of a suspended person are kept but
-- not used (person_excluded).
CREATE FUNCTION delete_push_subscriptions_of_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM push_subscriptions s
    WHERE s.tenant_id = NEW.tenant_id AND person_excluded(s.tenant_id, s.subject, s.email)
      AND (s.subject = NEW.external_subject
           OR (NEW.principal_class = 'human' AND s.email = lower(btrim(NEW.email))));
    RETURN NULL;
END $$;
CREATE TRIGGER delete_push_subscriptions AFTER UPDATE OF deleted_at ON principals
    FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL)
    EXECUTE FUNCTION delete_push_subscriptions_of_person();

-- ## Progress

-- The transaction that wrote the notification. Ids are generated before the transaction commits,
-- and do not show which notifications were visible when the cursor moved. The transaction shows it.
-- NULL in older rows.
ALTER TABLE notifications ADD COLUMN xact bigint;
ALTER TABLE notifications ALTER COLUMN xact SET DEFAULT pg_current_xact_id()::text::bigint;

-- The cursor, in one row. All notifications that are visible in this snapshot were taken up.
CREATE TABLE push_cursor (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    snapshot text NOT NULL,
    at timestamptz NOT NULL
);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON push_cursor');
