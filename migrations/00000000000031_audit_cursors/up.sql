-- Where each audit stream stands in its tenant's log of events.

CREATE TABLE audit_cursors (
    stream_id text COLLATE "C" PRIMARY KEY REFERENCES audit_streams,
    tenant_id text COLLATE "C" NOT NULL,
    -- The last event that the sink has taken, or that the filter leaves out.
    sequence bigint NOT NULL DEFAULT 0,
    -- Events that retention took before they were sent.
    lost_from bigint,
    lost_to bigint,
    -- When the newest checkpoint that was sent was signed.
    checkpoint_at timestamptz,
    -- Since the last success.
    failures integer NOT NULL DEFAULT 0,
    next_try_at timestamptz,
    -- Whoever sends must hold it.
    lease uuid,
    leased_until timestamptz
) WITH (fillfactor = 50);
CALL guard('audit_cursors');
CALL grant_to('{tenant}', 'SELECT, INSERT ON audit_cursors');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON audit_cursors');

SELECT set_config('role', authority_role('system'), true);
-- Streams that were only records until now send all that is kept.
INSERT INTO audit_cursors (stream_id, tenant_id) SELECT id, tenant_id FROM audit_streams;
INSERT INTO event_demands (id, tenant_id, event_types)
SELECT id, tenant_id, '{svc.decision.allowed,svc.decision.denied,svc.evidence_pack.generated}'
FROM audit_streams WHERE state = 'active' AND filter IS NULL;
SELECT set_config('role', 'none', true);

-- Shown from the table above.
ALTER TABLE audit_streams DROP COLUMN cursor;
