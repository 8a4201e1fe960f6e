-- How many decisions per second a tenant and an API key may have; NULL means no limit.

ALTER TABLE tenants ADD COLUMN decisions_per_second integer
    CHECK (decisions_per_second BETWEEN 1 AND 100000);
ALTER TABLE api_keys ADD COLUMN decisions_per_second integer
    CHECK (decisions_per_second BETWEEN 1 AND 100000);

-- The use of these limits, by the generic cell rate algorithm. All nodes share each limit; a node
-- reserves part of it at a time.
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
