-- Web Push for notifications: where a person's browsers can be reached, and how far pushes have come.

CREATE TABLE push_subscriptions (
    -- `svc:push_subscription:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    -- Issuer and subject.
    person text COLLATE "C" NOT NULL,
    -- As their principals name them.
    subject text NOT NULL,
    -- Lower case.
    email text,
    -- Of the token with which they last subscribed: what is pushed to them is for this role.
    role text NOT NULL,
    -- A keyed digest of the URL, and the URL sealed under the key ring (crates/core/src/keys/push_subscription.rs):
    -- whoever knows the URL may be able to push to the browser.
    endpoint_code bytea NOT NULL,
    sealed_endpoint bytea NOT NULL,
    -- The push service, without what follows its host.
    origin text NOT NULL,
    label text,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- In a row.
    failures integer NOT NULL DEFAULT 0,
    UNIQUE (tenant_id, person, endpoint_code)
);
CREATE INDEX push_subscriptions_role ON push_subscriptions (tenant_id, role);
-- No history: nothing is left of a subscription that was deleted.
CALL guard('push_subscriptions');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE, DELETE ON push_subscriptions');

-- ## Who loses them

CREATE FUNCTION delete_push_subscriptions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM push_subscriptions WHERE tenant_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER delete_push_subscriptions AFTER UPDATE OF state ON tenants
    FOR EACH ROW WHEN (NEW.state = 'deleted' AND OLD.state <> 'deleted')
    EXECUTE FUNCTION delete_push_subscriptions();

-- A deleted person's; those of a suspended one wait (person_excluded).
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

-- ## What was pushed

-- The transaction that wrote a notification. A notification's id is drawn before its transaction commits, so that
-- ids do not tell which ones were there when the cursor moved; the transaction does. Older rows have none.
ALTER TABLE notifications ADD COLUMN xact bigint;
ALTER TABLE notifications ALTER COLUMN xact SET DEFAULT pg_current_xact_id()::text::bigint;

-- One row: everything that this snapshot shows was taken up.
CREATE TABLE push_cursor (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    snapshot text NOT NULL,
    at timestamptz NOT NULL
);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON push_cursor');
