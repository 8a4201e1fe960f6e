-- Approval requests, and people's approvals and declines of held decisions and delegations.

-- Approval requests, which held decisions wait for. The decision request is not copied here: erasing
-- it in the decision is then enough.
CREATE TABLE approvals (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    decision_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    reason_code text COLLATE "C" NOT NULL,
    -- SHA-256 of the normal form of the decision request. The approval is for exactly this request.
    request_digest bytea NOT NULL,
    needed integer NOT NULL CHECK (needed > 0),
    roles text[] NOT NULL DEFAULT '{}',
    state text COLLATE "C" NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'approved', 'used', 'declined', 'expired', 'void')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- How many people have approved so far.
    given integer NOT NULL DEFAULT 0,
    acts jsonb[] NOT NULL DEFAULT '{}',
    -- The decision that used the approval.
    used_by text COLLATE "C",
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- [{kind: person | api_key, id}] of everyone who made the request, each once, in the order of
    -- their first request: people, API keys, and the people who created or rotated those keys. They
    -- may not approve the request.
    requested_by jsonb[] NOT NULL DEFAULT '{}',
    -- `none` if no person registered in the tenant could approve the request when it was last made;
    -- otherwise NULL.
    eligible text COLLATE "C" CHECK (eligible = 'none'),
    -- The authority under which the action was held, and the policy statements that held it, as of
    -- the decision.
    authority jsonb,
    policies jsonb[] NOT NULL DEFAULT '{}',
    -- The addresses of the people in `requested_by`, as in their tokens. A person can have several
    -- subjects, and is therefore also identified by their address. It has no other use and is not
    -- shown with the request.
    asker_emails text[] NOT NULL DEFAULT '{}',
    -- The reality findings that held the action, as of the opening of the approval request.
    reality jsonb[] NOT NULL DEFAULT '{}',
    declined_at timestamptz,
    -- For how many seconds the same request is denied, if the person who declined it shortened this
    -- time; otherwise NULL.
    declined_for_seconds integer CHECK (declined_for_seconds BETWEEN 0 AND 86400),
    -- When a person withdrew the decline. It then no longer applies to later requests.
    reopened_at timestamptz,
    -- Why the request is void, if no person made it void.
    void_reason text,
    -- The requester's own reason: free text, which is erased with the context of the decision request.
    justification text,
    CHECK ((state = 'used') = (used_by IS NOT NULL))
);
-- At most one pending approval request for each digest: repeating a decision request does not add
-- another.
CREATE UNIQUE INDEX approvals_pending ON approvals (tenant_id, request_digest)
    WHERE state = 'pending';
-- For finding earlier approval requests with the same digest.
CREATE INDEX approvals_by_question ON approvals (tenant_id, request_digest, created_at);
CREATE INDEX approvals_page ON approvals (tenant_id, created_at, id);
CREATE INDEX approvals_page_all ON approvals (created_at, id);
CREATE INDEX approvals_due ON approvals (expires_at) WHERE state IN ('pending', 'approved');
-- Lists of a tenant's requests in the order of their expiry, as approvers read them.
CREATE INDEX approvals_by_expiry ON approvals (tenant_id, expires_at, id)
    WHERE state IN ('pending', 'approved');
-- The pending requests of an agent are counted before another one is opened.
CREATE INDEX approvals_pending_by_subject ON approvals (tenant_id, subject) WHERE state = 'pending';
-- An agent's declined requests, for people who approve a similar request.
CREATE INDEX approvals_declined ON approvals (tenant_id, subject, action, created_at) WHERE state = 'declined';
-- For erasing the reason with the context.
CREATE INDEX approvals_justified ON approvals (decision_id) WHERE justification IS NOT NULL;
CREATE INDEX approvals_used_by ON approvals (used_by) WHERE used_by IS NOT NULL;
CALL guard('approvals');
CALL grant_to('{tenant}', 'SELECT, UPDATE (needed, roles, given, acts, state, updated_at, declined_at,
    declined_for_seconds, reopened_at, void_reason) ON approvals');
CALL grant_to('{system}', 'SELECT, UPDATE ON approvals');
-- The recorder may read only the columns that its statements need.
CALL grant_to('{recorder}', 'INSERT ON approvals');
CALL grant_to('{recorder}', 'SELECT (id, tenant_id, subject, request_digest, state, created_at, expires_at,
    updated_at, requested_by, eligible, asker_emails, declined_at, declined_for_seconds, reopened_at)
    ON approvals');
CALL grant_to('{recorder}', 'UPDATE (state, used_by, updated_at, requested_by, eligible, asker_emails,
    void_reason) ON approvals');

-- Returns the end of the time in which the same request is denied after a decline. The tenant's
-- setting determines this time. Without a setting, it is as long as the request could have waited. The
-- person who declines may set a shorter time. It is never longer than a day.
CREATE FUNCTION declined_until(
    declined timestamptz, opened timestamptz, expires timestamptz, shorter integer, setting integer
) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT declined + make_interval(secs => least(
        86400, shorter, coalesce(setting, extract(epoch FROM expires - opened)))::double precision)
$$;

-- ## Requests made by an API key

CREATE TABLE approval_askers (
    key_id text COLLATE "C" NOT NULL,
    -- The approval request's time, because lists are ordered by time.
    created_at timestamptz NOT NULL,
    approval_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (key_id, created_at, approval_id)
);
CALL guard('approval_askers');
CALL grant_to('{tenant}', 'SELECT ON approval_askers');
CALL grant_to('{recorder,system}', 'INSERT ON approval_askers');

CREATE FUNCTION note_askers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO approval_askers (key_id, created_at, approval_id, tenant_id)
    SELECT asker ->> 'id', NEW.created_at, NEW.id, NEW.tenant_id
    FROM unnest(NEW.requested_by) AS asker WHERE asker ->> 'kind' = 'api_key'
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_askers AFTER INSERT OR UPDATE OF requested_by ON approvals
    FOR EACH ROW EXECUTE FUNCTION note_askers();

-- ## Facts by which requests are compared

-- A message authentication code for each value of a declared role, by which requests of the tenant
-- with the same value are found. Equal values of two tenants have different codes.
--
-- A table rather than an array column with a GIN index: under row-level security, only leakproof
-- operators can use an index, and the operators of arrays are not leakproof.
CREATE TABLE approval_facts (
    tenant_id text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL
        CHECK (role IN ('payee', 'account', 'document', 'recipient', 'target')),
    value bytea NOT NULL,
    -- The approval request's time.
    created_at timestamptz NOT NULL,
    approval_id text COLLATE "C" NOT NULL,
    decision_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, role, value, created_at, approval_id)
);
CREATE INDEX approval_facts_of ON approval_facts (decision_id);
CREATE INDEX approval_facts_age ON approval_facts (created_at);
CALL guard('approval_facts');
CALL grant_to('{tenant}', 'SELECT ON approval_facts');
CALL grant_to('{system}', 'SELECT, DELETE ON approval_facts');
CALL grant_to('{recorder}', 'INSERT ON approval_facts');
-- The function below removes codes and reasons as their owner.
CREATE POLICY bookkeeping ON approval_facts TO CURRENT_USER USING (true);
CREATE POLICY bookkeeping ON approvals TO CURRENT_USER USING (justification IS NOT NULL) WITH CHECK (true);

-- Erasing a decision's context also removes the codes of its values, and the requester's reason. Runs
-- as its owner, because a person's data can be erased by a tenant's role.
CREATE FUNCTION forget_facts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM approval_facts WHERE decision_id = NEW.id;
    UPDATE approvals SET justification = NULL WHERE decision_id = NEW.id AND justification IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_facts AFTER UPDATE OF context ON decisions
    FOR EACH ROW WHEN (NEW.context = '' AND OLD.context <> '')
    EXECUTE FUNCTION forget_facts();

-- A request that ended without a decision of a person is not compared with others. The number of codes
-- is therefore bounded by the number of pending requests and of people's decisions.
CREATE FUNCTION forget_facts_of_approval() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM approval_facts WHERE decision_id = NEW.decision_id;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_facts AFTER UPDATE OF state ON approvals
    FOR EACH ROW WHEN (NEW.state IN ('void', 'expired') AND OLD.state = 'pending')
    EXECUTE FUNCTION forget_facts_of_approval();

-- ## Acts

-- One act of one person, with the exact signed text in `record`. `about` is the id of an approval,
-- a delegation or a tool. The signed text contains the person and their comment as salted digests.
CREATE TABLE approval_acts (
    about text COLLATE "C" NOT NULL,
    -- Issuer and subject, which identify a person independently of names.
    person text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    record text NOT NULL,
    kid text COLLATE "C" NOT NULL,
    signature bytea NOT NULL,
    created_at timestamptz NOT NULL,
    -- The number of earlier withdrawals for the same `about`. After a standing approval was
    -- withdrawn, the same people may approve again.
    round integer NOT NULL DEFAULT 0,
    -- Whether the act withdraws the standing approval, which an approver may also do, or ends a round
    -- in another way: it reopens a declined request, or pins the definition of a tool.
    withdraws boolean NOT NULL DEFAULT false,
    -- The salts and the comment that the digests in `record` are made from.
    by_salt text,
    comment text,
    comment_salt text,
    PRIMARY KEY (about, person, round, withdraws)
);
CALL append_only('approval_acts');
CALL may_erase('approval_acts', '{person,record,by_salt,comment,comment_salt}');
CALL revoke_from('{recorder}', 'ALL ON approval_acts');

-- ## Streams that watch held decisions

-- Notifies the streams when an approval changes its state or an outcome is reported. The payload is
-- the approval's or the decision's id; streams then read the details.
CREATE FUNCTION tell_decision_news() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('decision_news', to_jsonb(NEW) ->> TG_ARGV[0]);
    RETURN NULL;
END $$;
CREATE TRIGGER tell_news AFTER UPDATE OF state ON approvals
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION tell_decision_news('id');
CREATE TRIGGER tell_news AFTER INSERT ON decision_reports
    FOR EACH ROW EXECUTE FUNCTION tell_decision_news('decision_id');
