-- Decisions with their facts, idempotency keys, counters, limits, usage and searched facts. Evidence:
-- each tenant's transparency log, the packs sealed in it, and replays and reports of decisions.

-- ## Decisions

-- Gathered facts, each stored once by SHA-256. They refer to policies by the digest of the policy's
-- text. The text is in policy_versions.
CREATE TABLE fact_blobs (
    tenant_id text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    body bytea NOT NULL,
    PRIMARY KEY (tenant_id, sha256)
);
CALL append_only('fact_blobs');
-- Decisions share facts and refer to them by digest. The facts can therefore not be changed, only
-- deleted as a whole.
DROP TRIGGER append_only ON fact_blobs;
CREATE TRIGGER append_only BEFORE UPDATE ON fact_blobs
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- `record` has the signed bytes; the columns before it are for queries. The context and the facts
-- are separate, with their salts. The record can be verified without them.
CREATE TABLE decisions (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    decision text COLLATE "C" NOT NULL,
    reason_code text COLLATE "C" NOT NULL,
    evaluated_at timestamptz NOT NULL,
    record bytea NOT NULL,
    kid text COLLATE "C" NOT NULL,
    signature bytea NOT NULL,
    context bytea NOT NULL,
    context_salt bytea NOT NULL,
    -- The facts besides the request. The gathered facts are included by their SHA-256.
    facts bytea NOT NULL,
    facts_salt bytea NOT NULL,
    -- The approval request that a held decision waits for. Decisions on equal requests share it.
    approval_id text COLLATE "C",
    -- The keys of lists. `sort_key` consists of the time and the first two bytes of the digest in the
    -- id. It has the same order as ids. The other keys are hashes. Because hashes can collide, a
    -- query also compares the value itself. Postgres keeps the hash function stable across its
    -- versions.
    sort_key bigint NOT NULL GENERATED ALWAYS AS (('x' || substr(id, 14, 16))::bit(64)::bigint) STORED,
    subject_key integer NOT NULL GENERATED ALWAYS AS (hashtext(subject)) STORED,
    action_key integer NOT NULL GENERATED ALWAYS AS (hashtext(action)) STORED,
    decision_key integer NOT NULL GENERATED ALWAYS AS (hashtext(decision)) STORED,
    reason_key integer NOT NULL GENERATED ALWAYS AS (hashtext(reason_code)) STORED
) PARTITION BY RANGE (id);

-- Decisions are found by these indexes, never by their content. A query reads an index in the order
-- of ids or sort keys, which is the order of time, until its page is full. The index columns after
-- the id or the sort key are for filters: rows that don't match are skipped without reading them
-- from the table. A list by action, or of permitted decisions, reads the tenant's part of the first
-- index. The queries are in crates/runtime/src/decision_filter.rs, and tests/it/runtime/lists.rs
-- checks their plans.
--
-- Indexing only the time in the id, as an expression, would make the indexes smaller. But row-level
-- security permits only leakproof functions in index conditions, and only a superuser may declare a
-- function leakproof.
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, id, action_key, decision_key);
CREATE INDEX decisions_by_subject ON decisions (tenant_id, subject_key, sort_key, action_key, decision_key);
CREATE INDEX decisions_not_allowed ON decisions
    (tenant_id, decision_key, sort_key, reason_key, subject_key, action_key)
    WHERE decision_key <> hashtext('allow') AND decision_key <> hashtext('allow_with_constraints');

-- Each time the table grew by a tenth, analysing all columns occupied a CPU core for 0.4 to 1.9 s, and
-- new decisions had to wait. A target of 10 means a sample of 3,000 rows, which is enough to estimate
-- the number of tenants and agents.
ALTER TABLE decisions
    ALTER COLUMN id SET STATISTICS 10,
    ALTER COLUMN tenant_id SET STATISTICS 10,
    ALTER COLUMN subject SET STATISTICS 10,
    ALTER COLUMN action SET STATISTICS 10,
    ALTER COLUMN decision SET STATISTICS 10,
    ALTER COLUMN reason_code SET STATISTICS 10,
    ALTER COLUMN evaluated_at SET STATISTICS 10,
    ALTER COLUMN approval_id SET STATISTICS 10,
    ALTER COLUMN sort_key SET STATISTICS 10,
    ALTER COLUMN subject_key SET STATISTICS 10,
    ALTER COLUMN action_key SET STATISTICS 10,
    ALTER COLUMN decision_key SET STATISTICS 10,
    ALTER COLUMN reason_key SET STATISTICS 10,
    ALTER COLUMN record SET STATISTICS 0,
    ALTER COLUMN kid SET STATISTICS 0,
    ALTER COLUMN signature SET STATISTICS 0,
    ALTER COLUMN context SET STATISTICS 0,
    ALTER COLUMN context_salt SET STATISTICS 0,
    ALTER COLUMN facts SET STATISTICS 0,
    ALTER COLUMN facts_salt SET STATISTICS 0;
CALL append_only('decisions');
CALL may_erase('decisions', '{context,context_salt,facts,facts_salt}');
CALL may_remove('decisions');
CALL partition_by_time('decisions', 'svc:decision:');

-- The recorder writes for many tenants at once. It may read only the columns that its statements
-- need: for ON CONFLICT, and for the events of the decisions that it has stored. It may not read
-- records, contexts or facts.
CALL revoke_from('{recorder}', 'SELECT ON fact_blobs, decisions');
CALL grant_to('{recorder}', 'SELECT (tenant_id, sha256) ON fact_blobs');
CALL grant_to('{recorder}', 'SELECT (id, tenant_id) ON decisions');
CALL grant_to('{system}', 'DELETE ON fact_blobs');

-- Whether a decision could be stored now: the fence is free, the database is writable and the
-- current partition exists. A decision waits for the fence before it is stored: while another
-- transaction locks the fence, decisions wait and the node is not ready. The function inserts a row
-- without a tenant. If the partition exists, the insert fails because of the missing tenant, before
-- anything is written. Not even a dead row remains.
CREATE FUNCTION can_record() RETURNS boolean
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4157001);
    INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code, evaluated_at,
                           record, kid, signature, context, context_salt, facts, facts_salt)
    VALUES (time_bound('svc:decision:', clock_timestamp()), NULL, '', '', '', '',
            clock_timestamp(), '', '', '', '', '', '', '');
    RAISE 'a decision of no tenant was stored';
EXCEPTION WHEN not_null_violation THEN
    RETURN true;
END $$;
REVOKE EXECUTE ON FUNCTION can_record FROM PUBLIC;
CALL grant_to('{recorder}', 'EXECUTE ON FUNCTION can_record');

-- ## Idempotency

-- The first responses to idempotency keys, written in the same transaction as the call's effect.
CREATE TABLE idempotency_keys (
    -- `-` if the caller is the owner and the request has no tenant.
    tenant_id text COLLATE "C" NOT NULL,
    -- The caller: a person's issuer and subject, or an API key's id. A caller never gets the
    -- response of another caller.
    caller text COLLATE "C" NOT NULL,
    -- The API method.
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL CHECK (length(request_sha256) = 32),
    -- The response in Protobuf. NULL while the call is in progress, and after a response with a
    -- secret was returned a second time.
    answer bytea,
    -- Whether the response contains a secret. It is then sealed and kept for a short time.
    sealed boolean NOT NULL,
    created_at timestamptz NOT NULL,
    -- The decision's id, if the recorder stored the response.
    decision_id text COLLATE "C",
    PRIMARY KEY (tenant_id, scope, key, caller)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CALL guard('idempotency_keys');
-- The recorder can access the keys of decisions, and a tenant its own other keys.
ALTER POLICY tenant ON idempotency_keys USING (may_see(tenant_id) AND decision_id IS NULL);
DO $$
BEGIN
    EXECUTE format('ALTER POLICY every_tenant ON idempotency_keys TO %s', role_list('system'));
    EXECUTE format('CREATE POLICY decisions ON idempotency_keys TO %s USING (decision_id IS NOT NULL)',
                   role_list('recorder'));
END $$;
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE (answer), DELETE ON idempotency_keys');
CALL grant_to('{system}', 'UPDATE (caller) ON idempotency_keys');
CALL grant_to('{recorder}', 'SELECT (tenant_id, caller, scope, key, decision_id) ON idempotency_keys');
CALL grant_to('{recorder}', 'INSERT, UPDATE (answer) ON idempotency_keys');

-- ## Counters

-- How much of each counted bound is used in each fixed time window.
CREATE TABLE counters (
    tenant_id text COLLATE "C" NOT NULL,
    -- The id of the bounded delegation, or of the bounded row of `uses`.
    holder_id text COLLATE "C" NOT NULL,
    counts text COLLATE "C" NOT NULL CHECK (counts IN ('uses', 'amount')),
    window_seconds integer NOT NULL CHECK (window_seconds > 0),
    -- Epoch seconds.
    window_start bigint NOT NULL,
    used bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, holder_id, counts, window_seconds, window_start)
);
CREATE INDEX counters_by_end ON counters ((window_start + window_seconds));
CALL guard('counters');
CALL grant_to('{tenant}', 'SELECT ON counters');
CALL grant_to('{system}', 'SELECT, DELETE ON counters');
CALL grant_to('{recorder}', 'SELECT, INSERT, UPDATE (used) ON counters');
-- The function below writes counters as their owner.
CREATE POLICY bookkeeping ON counters TO CURRENT_USER USING (true);

-- Starts or raises a holder's counter for a new window length. The counter gets the largest value of
-- the holder's open windows. Otherwise the holder would have a second budget. Call the function while
-- authority can't change: a decision would otherwise count only in the old window.
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

-- ## Limits of decisions per second

-- The use of the limits of tenants and API keys, by the generic cell rate algorithm. All nodes share
-- each limit; a node reserves part of it at a time.
CREATE TABLE decision_rates (
    tenant_id text COLLATE "C" NOT NULL,
    -- The API key; empty for the tenant's own limit.
    key_id text COLLATE "C" NOT NULL,
    -- The time at which the whole limit is available again, if each decision uses
    -- 1 / decisions_per_second of a second.
    unused_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);
CALL guard('decision_rates');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON decision_rates');

-- ## Usage

-- The decisions of each tenant in each hour and on each day (UTC), by agent, action and decisive
-- reason. A worker counts them after they were committed (crates/runtime/src/usage/roll_up.rs).
-- Hours are kept for 90 days, and days for three years, also when the decisions are removed.
CREATE TABLE usage_hours (
    tenant_id text COLLATE "C" NOT NULL,
    -- The beginning of the hour.
    starts_at timestamptz NOT NULL,
    subject text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    reason_code text COLLATE "C" NOT NULL,
    allow bigint NOT NULL,
    require_approval bigint NOT NULL,
    deny bigint NOT NULL,
    PRIMARY KEY (tenant_id, starts_at, subject, action, reason_code)
) WITH (fillfactor = 70);
CREATE TABLE usage_days (
    LIKE usage_hours,
    PRIMARY KEY (tenant_id, starts_at, subject, action, reason_code)
) WITH (fillfactor = 70);
-- For lists of all tenants, and to delete old counts. Counts are in no index: raising them leaves the
-- indexes unchanged.
CREATE INDEX usage_hours_page ON usage_hours (starts_at DESC, tenant_id);
CREATE INDEX usage_days_page ON usage_days (starts_at DESC, tenant_id);
CALL guard('usage_hours');
CALL guard('usage_days');
CALL grant_to('{tenant}', 'SELECT ON usage_hours, usage_days');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON usage_hours, usage_days');

-- The position up to which decisions are counted (crates/runtime/src/usage/roll_up.rs), in one row.
CREATE TABLE usage_cursor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- All decisions with lower ids are counted, and all others are not.
    counted_until text COLLATE "C" NOT NULL,
    -- The time of the last count, and the id of its transaction.
    seen_at timestamptz NOT NULL,
    seen_xid bigint NOT NULL
);
CALL grant_to('{tenant}', 'SELECT (counted_until) ON usage_cursor');
CALL grant_to('{system}', 'SELECT, UPDATE ON usage_cursor');
INSERT INTO usage_cursor (counted_until, seen_at, seen_xid)
VALUES (time_bound('svc:decision:', now() - interval '3 years'), transaction_timestamp(),
        pg_current_xact_id()::text::bigint);

-- The position up to which decisions are counted for observing versions of policies, in one row, as
-- in usage_cursor (crates/runtime/src/observations).
CREATE TABLE observation_cursor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- All decisions with lower ids are counted, and all others are not.
    counted_until text COLLATE "C" NOT NULL,
    seen_at timestamptz NOT NULL,
    seen_xid bigint NOT NULL
);
CALL grant_to('{tenant}', 'SELECT (counted_until) ON observation_cursor');
CALL grant_to('{system}', 'SELECT, UPDATE ON observation_cursor');
INSERT INTO observation_cursor (counted_until, seen_at, seen_xid)
VALUES (time_bound('svc:decision:', now()), transaction_timestamp(), pg_current_xact_id()::text::bigint);

-- ## Decisions by the values of declared facts

-- Codes of the values that the request of a decision has for the roles that its tool declares, and of
-- its amount with the currency. A worker writes them after the decision was committed
-- (crates/runtime/src/search/index.rs). A code is 32 bits of a message authentication code: a search
-- compares the value itself with the request's context. A decision with several values of a role has
-- several rows. Without a declared role, a decision has no row.
CREATE TABLE decision_facts (
    -- The first 24 hex digits of the decision's id after its prefix: its time and 48 bits of its
    -- digest. The key is in the order of ids.
    key text COLLATE "C" NOT NULL,
    payee integer,
    account integer,
    document integer,
    recipient integer,
    target integer,
    amount integer,
    tenant_id text COLLATE "C" NOT NULL
) PARTITION BY RANGE (key);
-- Rows are written in the order of keys. The Bloom filters of a BRIN index take 6 bytes a row; B-trees
-- of four columns would take over 70. A filter covers 8 pages. PostgreSQL 13 lacks this operator class.
DO $$
DECLARE
    role text;
    roles CONSTANT text[] := '{payee,account,document,recipient,target,amount}';
BEGIN
    IF current_setting('server_version_num')::integer >= 140000 THEN
        EXECUTE format(
            'CREATE INDEX decision_facts_by_value ON decision_facts USING brin (key, %s)
             WITH (pages_per_range = 8, autosummarize = on)',
            (SELECT string_agg(name || ' int4_bloom_ops (n_distinct_per_range = 800)', ', ')
             FROM unnest(roles) AS name));
    ELSE
        FOREACH role IN ARRAY roles LOOP
            EXECUTE format('CREATE INDEX decision_facts_by_%s ON decision_facts (%1$s)', role);
        END LOOP;
    END IF;
END $$;
-- For the removal of single rows. It is `sort_key` of the decision.
CREATE INDEX decision_facts_by_sort_key ON decision_facts ((('x' || left(key, 16))::bit(64)::bigint));
CALL guard('decision_facts');
CALL grant_to('{tenant}', 'SELECT ON decision_facts');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON decision_facts');
CALL partition_by_time('decision_facts', '');
-- The functions that erase contexts and remove decisions delete rows as their owner.
CREATE POLICY bookkeeping ON decision_facts TO CURRENT_USER USING (true);

-- The key of a decision's row.
CREATE FUNCTION fact_key(decision_id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT substr(decision_id, 14, 24)
$$;

-- The position up to which decisions are indexed, in one row, as in usage_cursor.
CREATE TABLE fact_cursor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- All decisions with lower ids are indexed, and all others are not.
    indexed_until text COLLATE "C" NOT NULL,
    seen_at timestamptz NOT NULL,
    seen_xid bigint NOT NULL
);
CALL grant_to('{tenant}', 'SELECT (indexed_until) ON fact_cursor');
CALL grant_to('{system}', 'SELECT, UPDATE ON fact_cursor');
INSERT INTO fact_cursor (indexed_until, seen_at, seen_xid)
VALUES (time_bound('svc:decision:', now() - interval '3 years'), transaction_timestamp(),
        pg_current_xact_id()::text::bigint);

-- Erasing a decision's context also removes the codes of its values. The lock waits for the worker,
-- which may have read the context and not yet written its row. Runs as its owner, because a person's
-- data can be erased by a tenant's role.
CREATE FUNCTION forget_decision_facts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4157011);
    DELETE FROM decision_facts
    WHERE ('x' || left(key, 16))::bit(64)::bigint = NEW.sort_key AND key = fact_key(NEW.id)
      AND tenant_id = NEW.tenant_id;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_decision_facts AFTER UPDATE OF context ON decisions
    FOR EACH ROW WHEN (NEW.context = '' AND OLD.context <> '')
    EXECUTE FUNCTION forget_decision_facts();

-- ## Logs

-- The heads of the logs. If a log is behind its last signed checkpoint (after a restore of the
-- database), it is left unchanged, and a new epoch starts with a different origin.
CREATE TABLE log_heads (
    -- A request for a tenant that does not exist is denied. That decision is sealed like any other,
    -- in a log without a row in tenants.
    tenant_id text COLLATE "C" NOT NULL,
    epoch integer NOT NULL CHECK (epoch > 0),
    origin text COLLATE "C" NOT NULL UNIQUE,
    size bigint NOT NULL CHECK (size >= 0),
    root bytea NOT NULL CHECK (length(root) = 32),
    -- The last signed C2SP checkpoint.
    checkpoint text NOT NULL,
    -- The last known checkpoint of the previous epoch. The epoch's first leaf contains it.
    follows text,
    signed_at timestamptz NOT NULL,
    -- The decision of the last leaf. It shows how far sealing is: packs have no index of their places
    -- in the log.
    last_decision_id text COLLATE "C",
    PRIMARY KEY (tenant_id, epoch)
);
CALL guard('log_heads');
CALL grant_to('{tenant}', 'SELECT ON log_heads');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE (size, root, checkpoint, signed_at, last_decision_id)
    ON log_heads');

-- The Merkle tree's complete subtrees (RFC 6962); level 0 has the hashes of the leaves. Adjacent
-- subtrees that were completed together are one row: the hash of subtree `first + i` is the 32 bytes
-- at offset `32 * i`.
CREATE TABLE log_nodes (
    tenant_id text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    level smallint NOT NULL CHECK (level BETWEEN 0 AND 62),
    first bigint NOT NULL CHECK (first >= 0),
    hashes bytea NOT NULL CHECK (hashes <> '' AND length(hashes) % 32 = 0),
    -- A foreign key to the head is left out on purpose. Nodes and head are written in one
    -- transaction, and checking the key for each row would cost more than writing the row.
    PRIMARY KEY (tenant_id, epoch, level, first)
);
-- Hashes do not compress, and parts of an uncompressed value can be read separately.
ALTER TABLE log_nodes ALTER COLUMN hashes SET STORAGE EXTERNAL;
CALL append_only('log_nodes');

-- The checkpoint and the issuer, which all packs of one sealing share.
CREATE TABLE log_checkpoints (
    tenant_id text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    size bigint NOT NULL CHECK (size > 0),
    -- The C2SP signed note.
    note text NOT NULL,
    -- The service's public URL at the time of the sealing. The leaves contain this URL.
    issuer text NOT NULL,
    PRIMARY KEY (tenant_id, epoch, size)
);
CALL append_only('log_checkpoints');

-- ## Packs, replays and reports

-- A pack's place in the log. The rest of a pack is derived from the decision and the log: its leaf
-- repeats the decision's record and signature, and its proof repeats hashes of log_nodes and the
-- checkpoint.
--
-- A partitioned table can't enforce two constraints:
-- * An index in the log has only one pack. The lock of the log's head and the primary key of
--   log_nodes ensure this: only one sealing can start at an index.
-- * The proof of a replay has a pack. The code ensures this: proofs are made from packs, and packs
--   are not deleted before their proofs.
CREATE TABLE evidence_packs (
    -- Columns of fixed length come first, in an order that needs no padding.
    log_index bigint NOT NULL,
    -- The size of the log when the pack was sealed. The pack's checkpoint signs this size.
    tree_size bigint NOT NULL,
    sealed_at timestamptz NOT NULL,
    epoch integer NOT NULL,
    -- Whether the pack was sealed by `auto_seal` and not on request.
    automatic boolean NOT NULL DEFAULT false,
    decision_id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL
) PARTITION BY RANGE (decision_id);
CALL append_only('evidence_packs');
CALL may_remove('evidence_packs');
CALL partition_by_time('evidence_packs', 'svc:decision:');

-- Signed results of replays.
CREATE TABLE replay_proofs (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    decision_id text COLLATE "C" NOT NULL,
    mode text NOT NULL,
    result text NOT NULL CHECK (result IN ('match', 'mismatch', 'indeterminate')),
    -- The signed document in RFC 8785 form.
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    -- By the database's clock. `created_at` is by a node's clock, which may be slow.
    stored_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX replay_proofs_of_decision ON replay_proofs (decision_id, created_at);
CALL append_only('replay_proofs');
CALL may_remove('replay_proofs');

-- Agents' reports of the outcome of permitted decisions, at most one for each decision.
CREATE TABLE decision_reports (
    decision_id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('executed', 'failed', 'abandoned')),
    -- When the outcome occurred, according to the report.
    at timestamptz NOT NULL,
    detail text,
    reported_by text NOT NULL,
    -- The signed text (RFC 8785). It contains the digest of the decision's record.
    record text NOT NULL,
    kid text COLLATE "C" NOT NULL,
    signature bytea NOT NULL,
    created_at timestamptz NOT NULL,
    -- By the database's clock, as above.
    stored_at timestamptz NOT NULL DEFAULT now()
);
CALL append_only('decision_reports');
CALL may_erase('decision_reports', '{reported_by,detail,record}');
CALL may_remove('decision_reports');

-- Only the service itself seals, with the system role.
CALL revoke_from('{tenant}', 'INSERT ON log_nodes, log_checkpoints, evidence_packs');
CALL revoke_from('{recorder}',
    'ALL ON log_nodes, log_checkpoints, evidence_packs, replay_proofs, decision_reports');
