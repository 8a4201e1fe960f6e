-- Rate limits of webhook endpoints apply at the moment of sending. Their state is separate from
-- webhook_cursors, because other transactions lock those rows for too long.

CREATE TABLE webhook_paces (
    endpoint_id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    -- When the endpoint would be idle if each attempt took an equal share of a second.
    paced_until timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CALL guard('webhook_paces');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON webhook_paces');

ALTER TABLE webhook_cursors DROP COLUMN paced_until;
