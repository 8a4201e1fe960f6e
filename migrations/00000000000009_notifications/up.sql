-- Notifications for a tenant's people, shown in the application and pushed to browsers. Triggers write
-- a notification at the time of its event. Notifications are kept for 90 days.

CREATE TABLE notifications (
    -- `svc:notification:<UUIDv7>`
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    kind text NOT NULL CHECK (kind IN (
        'approval.opened', 'approval.limit_reached', 'webhook_endpoint.created', 'webhook_endpoint.paused',
        'webhook_endpoint.failing', 'webhook_endpoint.dead', 'webhook_endpoint.disabled',
        'webhook_endpoint.lost', 'audit_stream.stopped', 'audit_stream.lost', 'audit_stream.failing',
        'api_key.expiring', 'delegation.expiring', 'reality.drift_detected')),
    -- The recipients: the people of the tenant with any of these roles.
    roles text[] NOT NULL CHECK (roles <> '{}'),
    subject_ref text COLLATE "C" NOT NULL,
    -- Ids, codes and times, but never text that a caller wrote.
    data jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    -- The transaction that wrote the notification. Ids are generated before the transaction commits,
    -- and do not show which notifications were visible when the push cursor moved. The transactions
    -- do.
    xact bigint DEFAULT pg_current_xact_id()::text::bigint
) PARTITION BY RANGE (id);
CREATE INDEX notifications_page ON notifications (tenant_id, id DESC);
CALL guard('notifications');
CALL grant_to('{tenant,system}', 'SELECT, INSERT ON notifications');
CALL grant_to('{recorder}', 'INSERT ON notifications');
CALL grant_to('{recorder}', 'SELECT (id, tenant_id, kind, subject_ref) ON notifications');
CALL partition_by_time('notifications', 'svc:notification:', 'week');

-- The notifications that each person has read.
CREATE TABLE notification_reads (
    -- The notification's id. This row is deleted together with the notification.
    id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    -- The person: issuer and subject.
    person text COLLATE "C" NOT NULL,
    read_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, person)
) PARTITION BY RANGE (id);
CALL guard('notification_reads');
CALL grant_to('{tenant}', 'SELECT, INSERT ON notification_reads');
CALL grant_to('{system}', 'SELECT, DELETE ON notification_reads');
CALL partition_by_time('notification_reads', 'svc:notification:', 'week');

-- Writes a notification. Its id is generated here in the same form as the service's ids: UUIDv7
-- (RFC 9562), which starts with the time.
CREATE FUNCTION notify_people(
    kind text, tenant text, roles text[], subject text, data jsonb DEFAULT '{}'
) RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO notifications (id, tenant_id, kind, roles, subject_ref, data, created_at)
    SELECT time_bound('svc:notification:', at)
               || '7' || substr(replace(gen_random_uuid()::text, '-', ''), 14),
           tenant, kind, roles, subject, jsonb_strip_nulls(data), at
    FROM clock_timestamp() AS at
$$;

-- ## Held decisions, for the people who may decide them

CREATE FUNCTION notify_of_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'approval.opened', NEW.tenant_id, '{approver,legal,admin}', NEW.id,
        jsonb_build_object('approval_id', NEW.id, 'decision_id', NEW.decision_id,
                           'principal_id', NEW.subject, 'reason_code', NEW.reason_code,
                           'expires_at', event_time(NEW.expires_at)));
    RETURN NULL;
END $$;
CREATE TRIGGER notify_people AFTER INSERT ON approvals
    FOR EACH ROW EXECUTE FUNCTION notify_of_approval();

-- ## The limit of open requests, for admins

-- Notifies at most once an hour for each agent. The caller has locked the agent. Two decisions of
-- one agent can therefore not notify at the same time.
CREATE FUNCTION notify_of_open_requests(tenant text, agent text, pending integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM notifications n
        WHERE n.tenant_id = tenant AND n.kind = 'approval.limit_reached' AND n.subject_ref = agent
          AND n.id >= time_bound('svc:notification:', clock_timestamp() - interval '1 hour')
    ) THEN
        PERFORM notify_people('approval.limit_reached', tenant, '{admin}', agent,
                              jsonb_build_object('principal_id', agent, 'pending', pending));
    END IF;
END $$;

-- ## Endpoints and streams, for admins

CREATE FUNCTION notify_of_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'webhook_endpoint.' || CASE TG_OP WHEN 'INSERT' THEN 'created' ELSE NEW.state END,
        NEW.tenant_id, '{admin}', NEW.id,
        jsonb_build_object('endpoint_id', NEW.id, 'state', NEW.state,
                           'state_reason', NEW.state_reason));
    RETURN NULL;
END $$;
-- Admins are notified only of endpoints that the installation's owner created.
CREATE TRIGGER notify_people_created AFTER INSERT ON webhook_endpoints
    FOR EACH ROW WHEN (num_nonnulls(NEW.key_id, NEW.person_subject) = 0)
    EXECUTE FUNCTION notify_of_endpoint();
CREATE TRIGGER notify_people_stopped AFTER UPDATE OF state ON webhook_endpoints
    FOR EACH ROW WHEN (NEW.state <> OLD.state AND NEW.state IN ('paused', 'disabled'))
    EXECUTE FUNCTION notify_of_endpoint();

-- Endpoints that fail are announced, once for each outage: with the fifth failure in a row, and with
-- the first delivery that used up its attempts.
CREATE FUNCTION announce_failing_endpoint() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    about CONSTANT jsonb := jsonb_build_object(
        'endpoint_id', NEW.endpoint_id, 'failing_since', event_time(NEW.failing_since));
BEGIN
    PERFORM notify_people(
        'webhook_endpoint.' || TG_ARGV[0], NEW.tenant_id, '{admin}', NEW.endpoint_id, about);
    PERFORM announce(
        'svc.webhook_endpoint.' || TG_ARGV[0], NEW.tenant_id, NEW.endpoint_id, NEW.endpoint_id,
        NULL, NULL, NULL, about);
    RETURN NULL;
END $$;
CREATE TRIGGER announce_failing AFTER UPDATE OF breaker ON webhook_cursors
    FOR EACH ROW WHEN (OLD.breaker = 'closed' AND NEW.breaker = 'open')
    EXECUTE FUNCTION announce_failing_endpoint('failing');
CREATE TRIGGER announce_dead AFTER UPDATE OF dead_since ON webhook_cursors
    FOR EACH ROW WHEN (OLD.dead_since IS NULL AND NEW.dead_since IS NOT NULL)
    EXECUTE FUNCTION announce_failing_endpoint('dead');

CREATE FUNCTION notify_of_lost_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'webhook_endpoint.lost', NEW.tenant_id, '{admin}', NEW.endpoint_id,
        jsonb_build_object('endpoint_id', NEW.endpoint_id, 'lost_from', NEW.lost_from,
                           'lost_to', NEW.lost_to));
    RETURN NULL;
END $$;
-- Also notifies when deliveries of deleted events are cancelled. Those events are before the cursor's
-- position.
CREATE TRIGGER notify_people AFTER UPDATE OF lost_from, lost_to ON webhook_cursors
    FOR EACH ROW
    WHEN (NEW.lost_to IS NOT NULL
          AND (NEW.lost_from, NEW.lost_to) IS DISTINCT FROM (OLD.lost_from, OLD.lost_to))
    EXECUTE FUNCTION notify_of_lost_events();

CREATE FUNCTION notify_of_events_lost_to_replay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'webhook_endpoint.lost', NEW.tenant_id, '{admin}', NEW.endpoint_id,
        jsonb_build_object('endpoint_id', NEW.endpoint_id, 'replay_id', NEW.id,
                           'lost_from', NEW.lost_from, 'lost_to', NEW.lost_to));
    RETURN NULL;
END $$;
CREATE TRIGGER notify_people AFTER UPDATE OF lost_to ON webhook_replays
    FOR EACH ROW WHEN (NEW.lost_to IS NOT NULL AND NEW.lost_to IS DISTINCT FROM OLD.lost_to)
    EXECUTE FUNCTION notify_of_events_lost_to_replay();

CREATE FUNCTION notify_of_stream() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'audit_stream.stopped', NEW.tenant_id, '{admin}', NEW.id,
        jsonb_build_object('audit_stream_id', NEW.id, 'state', NEW.state));
    RETURN NULL;
END $$;
CREATE TRIGGER notify_people AFTER UPDATE OF state ON audit_streams
    FOR EACH ROW WHEN (OLD.state = 'active' AND NEW.state <> 'active')
    EXECUTE FUNCTION notify_of_stream();

CREATE FUNCTION notify_of_events_lost_to_stream() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'audit_stream.lost', NEW.tenant_id, '{admin}', NEW.stream_id,
        jsonb_build_object('audit_stream_id', NEW.stream_id, 'lost_from', NEW.lost_from,
                           'lost_to', NEW.lost_to));
    RETURN NULL;
END $$;
CREATE TRIGGER notify_people AFTER UPDATE OF lost_to ON audit_cursors
    FOR EACH ROW WHEN (NEW.lost_to IS NOT NULL AND NEW.lost_to IS DISTINCT FROM OLD.lost_to)
    EXECUTE FUNCTION notify_of_events_lost_to_stream();

CREATE FUNCTION notify_of_failing_stream() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM notify_people(
        'audit_stream.failing', NEW.tenant_id, '{admin}', NEW.stream_id,
        jsonb_build_object(
            'audit_stream_id', NEW.stream_id,
            'failures', greatest(NEW.failures, NEW.checkpoint_failures)));
    RETURN NULL;
END $$;
-- Notifies once for each outage: at the fifth failure in a row, after about 15 seconds.
CREATE TRIGGER notify_people_failing AFTER UPDATE OF failures, checkpoint_failures ON audit_cursors
    FOR EACH ROW
    WHEN (greatest(OLD.failures, OLD.checkpoint_failures) < 5
          AND greatest(NEW.failures, NEW.checkpoint_failures) >= 5)
    EXECUTE FUNCTION notify_of_failing_stream();

-- ## Upcoming expiries, for admins

-- The upcoming expiries that were announced already. Each is announced once.
CREATE TABLE expiry_notices (
    -- The API key or the delegation.
    id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    expires_at timestamptz NOT NULL,
    days integer NOT NULL,
    PRIMARY KEY (id, expires_at, days)
);
CREATE INDEX expiry_notices_age ON expiry_notices (expires_at);
CALL guard('expiry_notices');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON expiry_notices');

-- Announces keys and delegations seven days and one day before they expire. If a key or delegation
-- was created later than that time, it is not announced: its creator knows that it is short-lived.
CREATE FUNCTION notify_of_expiries() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    WITH due AS (
        SELECT k.id, k.tenant_id, k.expires_at, d.days, 'api_key' AS kind
        FROM (VALUES (1, 0), (7, 1)) AS d (days, least)
        JOIN api_keys k ON k.expires_at > now() + make_interval(days => d.least)
            AND k.expires_at <= now() + make_interval(days => d.days)
            AND k.created_at <= k.expires_at - make_interval(days => d.days)
        WHERE k.status = 'active'
        UNION ALL
        SELECT g.id, g.tenant_id, g.expires_at, d.days, 'delegation'
        FROM (VALUES (1, 0), (7, 1)) AS d (days, least)
        JOIN delegations g ON g.expires_at > now() + make_interval(days => d.least)
            AND g.expires_at <= now() + make_interval(days => d.days)
            AND g.created_at <= g.expires_at - make_interval(days => d.days)
        WHERE g.state <> 'revoked'
    ), noted AS (
        INSERT INTO expiry_notices (id, tenant_id, expires_at, days)
        SELECT id, tenant_id, expires_at, days FROM due
        ON CONFLICT DO NOTHING
        RETURNING id, expires_at, days
    ), told AS (
        SELECT notify_people(
            kind || '.expiring', due.tenant_id, '{admin}', due.id,
            jsonb_build_object(kind || '_id', due.id, 'days', due.days,
                               'expires_at', event_time(due.expires_at)))
        FROM due JOIN noted USING (id, expires_at, days)
    )
    SELECT count(*) FROM told
$$;

-- ## Deletion after 90 days

-- Drops the partitions with only notifications from before the given time. Runs as the tables'
-- owner, because the service may not drop tables.
CREATE FUNCTION drop_old_notifications(before timestamptz DEFAULT now() - interval '90 days')
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    part record;
    dropped integer := 0;
BEGIN
    IF before > now() - interval '30 days' THEN
        RAISE 'notifications are kept for 30 days at least';
    END IF;
    PERFORM pg_advisory_xact_lock(4157002);
    FOR part IN
        SELECT i.inhrelid::regclass AS name,
               substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)') AS ends
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent IN ('notifications'::regclass, 'notification_reads'::regclass)
    LOOP
        IF part.ends COLLATE "C" <= time_bound('svc:notification:', before) COLLATE "C" THEN
            EXECUTE format('DROP TABLE %s', part.name);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;
REVOKE EXECUTE ON FUNCTION notify_of_expiries, drop_old_notifications FROM PUBLIC;
CALL grant_to('{system}', 'EXECUTE ON FUNCTION notify_of_expiries, drop_old_notifications');

-- ## Web Push

-- The push subscriptions of a person's browsers.
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
    -- (crates/keys/src/push_subscription.rs). Knowing the URL may be enough to push to the
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

-- The push cursor, in one row. All notifications that are visible in this snapshot were processed.
CREATE TABLE push_cursor (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    snapshot text NOT NULL,
    at timestamptz NOT NULL
);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON push_cursor');

-- ## Messages about approvals, by chat and e-mail

-- The channels of people, and the chats of a tenant.
CREATE TABLE message_channels (
    -- `svc:message_channel:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    kind text NOT NULL CHECK (kind IN ('email', 'slack', 'mattermost', 'teams')),
    -- The person: issuer and subject; NULL for a channel of the tenant.
    person text COLLATE "C",
    -- The person's subject and address (in lower case), as principals have them.
    subject text,
    email text,
    -- The role in the token with which the channel was last saved.
    role text NOT NULL,
    -- An e-mail address, or the origin of a chat's webhook.
    target text NOT NULL,
    -- The URL of a chat's webhook, sealed under the key ring (crates/keys/src/message_channel.rs). The
    -- URL is enough to write to the chat.
    sealed_url bytea,
    -- Written by crates/registry/src/messages/settings.rs.
    settings jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tested_at timestamptz,
    -- Since when every attempt has failed, and the class of the last failure.
    failing_since timestamptz,
    last_error text,
    CHECK ((kind = 'email') = (sealed_url IS NULL)),
    CHECK ((person IS NULL) = (subject IS NULL)),
    CHECK (person IS NOT NULL OR kind <> 'email')
);
CREATE INDEX message_channels_tenant ON message_channels (tenant_id, person);
-- Channels have no history. A deleted channel leaves no trace.
CALL guard('message_channels');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE, DELETE ON message_channels');

-- One row for each pending request and channel, also if the channel does not get a message: a request
-- is then considered once.
CREATE TABLE messages (
    -- `svc:message:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL REFERENCES message_channels ON DELETE CASCADE,
    approval_id text COLLATE "C" NOT NULL,
    -- `asked`: a request waits. `lapsed`: it expired without a decision.
    kind text NOT NULL CHECK (kind IN ('asked', 'lapsed')),
    -- `open`: to be sent. `sent`: accepted by the receiver, and the request waits. `ended`: accepted, and
    -- the request has ended. `failed`: not accepted. `skipped`: not to be sent.
    state text NOT NULL CHECK (state IN ('open', 'sent', 'ended', 'failed', 'skipped')),
    attempts integer NOT NULL DEFAULT 0,
    -- When an open message is due. An attempt moves the time ahead, which keeps other nodes from sending
    -- the message.
    next_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (channel_id, approval_id, kind)
);
CREATE INDEX messages_due ON messages (next_at) WHERE state = 'open';
CREATE INDEX messages_told ON messages (approval_id) WHERE state = 'sent';
CREATE INDEX messages_age ON messages (created_at);
CALL guard('messages');
CALL grant_to('{tenant}', 'SELECT, DELETE ON messages');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON messages');

CREATE FUNCTION delete_message_channels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM message_channels WHERE tenant_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER delete_message_channels AFTER UPDATE OF state ON tenants
    FOR EACH ROW WHEN (NEW.state = 'deleted' AND OLD.state <> 'deleted')
    EXECUTE FUNCTION delete_message_channels();

-- Deletes the channels of a deleted person. Channels of a suspended person are kept but not used.
CREATE FUNCTION delete_message_channels_of_person() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM message_channels c
    WHERE c.tenant_id = NEW.tenant_id AND c.person IS NOT NULL
      AND person_excluded(c.tenant_id, c.subject, c.email)
      AND (c.subject = NEW.external_subject
           OR (NEW.principal_class = 'human' AND c.email = lower(btrim(NEW.email))));
    RETURN NULL;
END $$;
CREATE TRIGGER delete_message_channels AFTER UPDATE OF deleted_at ON principals
    FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL AND OLD.deleted_at IS NULL)
    EXECUTE FUNCTION delete_message_channels_of_person();
