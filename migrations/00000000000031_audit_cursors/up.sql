-- The position of each audit stream in its tenant's event log.

CREATE TABLE audit_cursors (
    stream_id text COLLATE "C" PRIMARY KEY REFERENCES audit_streams,
    tenant_id text COLLATE "C" NOT NULL,
    -- The sequence of the last event that the sink has accepted or the filter has left out.
    sequence bigint NOT NULL DEFAULT 0,
    -- The first and the last sequence of events that retention deleted before they were sent.
    lost_from bigint,
    lost_to bigint,
    -- The signing time of the newest checkpoint that was sent.
    checkpoint_at timestamptz,
    -- The number of failures since the last success.
    failures integer NOT NULL DEFAULT 0,
    next_try_at timestamptz,
    -- The lease of the node that sends the stream. Only that node may record progress.
    lease uuid,
    leased_until timestamptz
) WITH (fillfactor = 50);
CALL guard('audit_cursors');
CALL grant_to('{tenant}', 'SELECT, INSERT ON audit_cursors');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON audit_cursors');

SELECT set_config('role', authority_role('system'), true);
-- Existing streams have not sent any events yet. They start with the oldest event that is kept.
INSERT INTO audit_cursors (stream_id, tenant_id) SELECT id, tenant_id FROM audit_streams;
INSERT INTO event_demands (id, tenant_id, event_types)
SELECT id, tenant_id, '{svc.decision.allowed,svc.decision.denied,svc.evidence_pack.generated}'
FROM audit_streams WHERE state = 'active' AND filter IS NULL;
SELECT set_config('role', 'none', true);

-- The cursor is now read from audit_cursors.
ALTER TABLE audit_streams DROP COLUMN cursor;
