-- Evidence packs by month, without the data that can be derived from the decision and the log.
--
-- Until now a pack was stored in the form in which it is returned: its leaf repeated the decision's
-- record and signature, and its proof repeated hashes of log_nodes and the checkpoint that all
-- packs of one sealing share. Now a pack's row has only its place in the log, and log_checkpoints
-- has the checkpoint once for each sealing. Existing rows are not changed.
--
-- The migration uses several transactions. The existing rows are validated while packs can still be
-- sealed and read. The last transaction then attaches the existing table as a partition, which is
-- quick. If a transaction fails, the migration can be run again from the start. The table keeps its
-- name and columns. The previous release can therefore still seal packs and read the packs that it
-- sealed. Reading a new row is an error in that release: it never returns an incorrect pack.
--
-- Two constraints can't be kept in a partitioned table. That an index in the log has only one pack
-- follows from the primary key of log_nodes, by which only one sealing can start at an index, and
-- from the lock of the log's head. That a replay's proof has its pack follows from the code: proofs
-- are made from packs, and packs are not deleted before their proofs.
DO $$
DECLARE
    since timestamptz := date_trunc('month', now(), 'UTC');
    newest text;
BEGIN
    IF (SELECT relkind FROM pg_class WHERE oid = 'evidence_packs'::regclass) = 'p' THEN
        RETURN;
    END IF;

    -- ## What the present table has

    -- Its owner sees no rows.
    PERFORM set_config('role', authority_role('system'), true);
    SELECT max(decision_id) INTO newest FROM evidence_packs;
    PERFORM set_config('role', 'none', true);
    -- It stays the partition of the present month, in which packs are sealed meanwhile.
    IF newest IS NOT NULL THEN
        since := date_trunc('month', greatest(
            now() + interval '1 day',
            to_timestamp(('x' || substr(newest, length('svc:decision:') + 1, 12))::bit(48)::bigint / 1000.0)
        ), 'UTC') + interval '1 month';
    END IF;
    -- The decision of the last leaf, for how far sealing is: packs have no index of their places in the log.
    ALTER TABLE log_heads ADD COLUMN IF NOT EXISTS last_decision_id text COLLATE "C";
    ALTER TABLE evidence_packs
        ADD COLUMN IF NOT EXISTS tree_size bigint,
        DROP CONSTRAINT IF EXISTS evidence_packs_form,
        DROP CONSTRAINT IF EXISTS evidence_packs_until;
    ALTER TABLE evidence_packs ADD CONSTRAINT evidence_packs_form CHECK (
        num_nonnulls(origin, body, proof) = CASE WHEN tree_size IS NULL THEN 3 ELSE 0 END) NOT VALID;
    EXECUTE format('ALTER TABLE evidence_packs ADD CONSTRAINT evidence_packs_until
                    CHECK (decision_id IS NOT NULL AND decision_id < %L) NOT VALID',
                   time_bound('svc:decision:', since));
    COMMIT;
    -- Nobody waits for these. After them, attaching looks at no row.
    ALTER TABLE evidence_packs VALIDATE CONSTRAINT evidence_packs_form;
    COMMIT;
    ALTER TABLE evidence_packs VALIDATE CONSTRAINT evidence_packs_until;
    COMMIT;

    -- ## The partitioned table

    -- Whoever seals has locked a head before a pack.
    LOCK TABLE log_heads IN EXCLUSIVE MODE;
    ALTER TABLE replay_proofs DROP CONSTRAINT replay_proofs_decision_id_fkey;
    ALTER TABLE evidence_packs RENAME TO evidence_packs_before;
    ALTER INDEX evidence_packs_pkey RENAME TO evidence_packs_before_pkey;
    ALTER TABLE evidence_packs_before
        ALTER COLUMN origin DROP NOT NULL,
        ALTER COLUMN body DROP NOT NULL,
        ALTER COLUMN proof DROP NOT NULL;
    -- Fixed lengths first, since the others need no padding.
    CREATE TABLE evidence_packs (
        log_index bigint NOT NULL,
        -- Of the log as of sealing, which its checkpoint signs; NULL in a row from before this migration.
        tree_size bigint,
        sealed_at timestamptz NOT NULL,
        epoch integer NOT NULL,
        -- By `auto_seal`, not by a request.
        automatic boolean NOT NULL DEFAULT false,
        decision_id text COLLATE "C" PRIMARY KEY,
        tenant_id text COLLATE "C" NOT NULL,
        -- Only in rows from before: the log's origin; the leaf, which is the pack without its `log`, in RFC 8785
        -- form; and the C2SP tlog-proof, as of sealing.
        origin text COLLATE "C",
        body bytea,
        proof text,
        CONSTRAINT evidence_packs_form CHECK (
            num_nonnulls(origin, body, proof) = CASE WHEN tree_size IS NULL THEN 3 ELSE 0 END)
    ) PARTITION BY RANGE (decision_id);
    CALL append_only('evidence_packs');
    CALL revoke_from('{tenant}', 'INSERT ON evidence_packs');
    CALL revoke_from('{recorder}', 'ALL ON evidence_packs');
    CREATE TRIGGER announce AFTER INSERT ON evidence_packs
        REFERENCING NEW TABLE AS packs FOR EACH STATEMENT EXECUTE FUNCTION announce_packs();

    -- Rights, policies and triggers are the parent's.
    DROP TRIGGER announce ON evidence_packs_before;
    DROP TRIGGER append_only ON evidence_packs_before;
    DROP POLICY tenant ON evidence_packs_before;
    DROP POLICY every_tenant ON evidence_packs_before;
    ALTER TABLE evidence_packs_before NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
    CALL revoke_from('{tenant,system,recorder}', 'ALL ON evidence_packs_before');
    EXECUTE format('ALTER TABLE evidence_packs ATTACH PARTITION evidence_packs_before
                    FOR VALUES FROM (MINVALUE) TO (%L)', time_bound('svc:decision:', since));
    ALTER TABLE evidence_packs_before DROP CONSTRAINT evidence_packs_until;
    INSERT INTO time_partitions VALUES ('evidence_packs', 'svc:decision:', 'month', since);
    PERFORM extend_partitions();

    -- ## What the packs of one sealing share

    CREATE TABLE log_checkpoints (
        tenant_id text COLLATE "C" NOT NULL,
        epoch integer NOT NULL,
        size bigint NOT NULL CHECK (size > 0),
        -- The C2SP signed note.
        note text NOT NULL,
        -- The service's public URL at that time, which is in the leaves.
        issuer text NOT NULL,
        PRIMARY KEY (tenant_id, epoch, size)
    );
    CALL append_only('log_checkpoints');
    CALL revoke_from('{tenant}', 'INSERT ON log_checkpoints');
    CALL revoke_from('{recorder}', 'ALL ON log_checkpoints');

    -- ## How far sealing is

    CALL grant_to('{system}', 'UPDATE (last_decision_id) ON log_heads');
    PERFORM set_config('role', authority_role('system'), true);
    UPDATE log_heads h SET last_decision_id = (
        SELECT p.decision_id FROM evidence_packs p WHERE p.tenant_id = h.tenant_id AND p.epoch = h.epoch
        ORDER BY p.log_index DESC LIMIT 1);
    PERFORM set_config('role', 'none', true);
END $$;
