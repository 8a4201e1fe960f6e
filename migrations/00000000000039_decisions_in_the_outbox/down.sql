-- Rewrites all rows of the outbox: a row with several decisions becomes several rows, and the
-- numbers of all rows must stay in order.
CREATE TEMPORARY TABLE waiting ON COMMIT DROP AS
SELECT number, tenant_id, coalesce(event_type, CASE d.decision ->> 'decision' WHEN 'deny'
           THEN 'svc.decision.denied' ELSE 'svc.decision.allowed' END) AS event_type,
       coalesce(subject_ref, d.decision ->> 'decision_id') AS subject_ref, correlation_id,
       actor_entity_id, principal_entity_id, reason_code, occurred_at, data, d.place
FROM event_outbox
LEFT JOIN LATERAL unnest(decisions::jsonb[]) WITH ORDINALITY AS d (decision, place) ON true;
DELETE FROM event_outbox;
ALTER TABLE event_outbox
    DROP CONSTRAINT event_outbox_kind,
    DROP COLUMN decisions,
    DROP COLUMN size,
    ALTER COLUMN event_type SET NOT NULL,
    ALTER COLUMN subject_ref SET NOT NULL;
INSERT INTO event_outbox (tenant_id, event_type, subject_ref, correlation_id, actor_entity_id,
                          principal_entity_id, reason_code, occurred_at, data)
SELECT tenant_id, event_type, subject_ref, correlation_id, actor_entity_id, principal_entity_id,
       reason_code, occurred_at, data
FROM waiting ORDER BY number, place;
DROP TABLE waiting;
