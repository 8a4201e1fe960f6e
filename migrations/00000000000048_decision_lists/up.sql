-- Lists of decisions by subject, action, decision and reason.

-- A query reads an index below in the order of ids, which is the order of time, until its page is
-- full. The index columns after the id are for filters: rows that don't match are skipped without
-- reading them from the table. The queries are in crates/runtime/src/decision_filter.rs, and
-- tests/it/runtime/lists.rs checks their plans.
--
-- Indexing only the time in the id, as an expression, would make the indexes half as large. But
-- row-level security permits only leakproof functions in index conditions, and only a superuser may
-- declare a function leakproof.
--
-- On a large table, decisions wait while the indexes are built: one or two minutes for each eight
-- million decisions. To avoid this, first create the same indexes CONCURRENTLY on each partition,
-- under any name. This migration then only attaches them.

-- exception: Postgres has no CONCURRENTLY for a partitioned table
CREATE INDEX decisions_by_subject ON decisions (tenant_id, subject, id, action, decision);
-- exception: the table is partitioned, as above
CREATE INDEX decisions_by_action ON decisions (tenant_id, action, id, decision);
-- exception: the table is partitioned, as above
CREATE INDEX decisions_by_decision ON decisions (tenant_id, decision, id);
-- All permitted decisions, and only these, have the reason `permission_granted`. They are found by
-- `decision` and are left out of this index.
-- exception: the table is partitioned, as above
CREATE INDEX decisions_by_reason ON decisions (tenant_id, reason_code, id, decision, subject, action)
    WHERE reason_code <> 'permission_granted';
