-- Lists of decisions by subject, action, decision and reason.

-- Each list is read in the order of ids, which is that of time, from one of these indexes, until its page is full. The
-- columns after the id do not change that order: they let rows be passed over without reading them. The queries are
-- in crates/runtime/src/decision_filter.rs, and tests/it/runtime/lists.rs has their plans.
--
-- Only the time of the id, by an expression, would be half as large. But row-level security lets no function near an
-- index that might leak what it sees, and only a superuser may say that one does not.
--
-- On a large table this holds up decisions while the indexes are built, one or two minutes for each eight million of
-- them. To avoid that, first create the same indexes CONCURRENTLY on each partition, under any name: then this only
-- attaches them.

-- exception: Postgres has no CONCURRENTLY for a partitioned table
CREATE INDEX decisions_by_subject ON decisions (tenant_id, subject, id, action, decision);
-- exception: of a partitioned table, as above
CREATE INDEX decisions_by_action ON decisions (tenant_id, action, id, decision);
-- exception: of a partitioned table, as above
CREATE INDEX decisions_by_decision ON decisions (tenant_id, decision, id);
-- Permissions have one reason, and it is no other decision's: they are found by `decision`.
-- exception: of a partitioned table, as above
CREATE INDEX decisions_by_reason ON decisions (tenant_id, reason_code, id, decision, subject, action)
    WHERE reason_code <> 'permission_granted';
