-- How many decisions a second a tenant and an API key may have; no limit where it is null.

ALTER TABLE tenants ADD COLUMN decisions_per_second integer
    CHECK (decisions_per_second BETWEEN 1 AND 100000);
ALTER TABLE api_keys ADD COLUMN decisions_per_second integer
    CHECK (decisions_per_second BETWEEN 1 AND 100000);

-- What is used of these limits: the generic cell rate algorithm. Shared by all nodes, which take portions.
CREATE TABLE decision_rates (
    tenant_id text COLLATE "C" NOT NULL,
    -- Empty for the tenant's own limit.
    key_id text COLLATE "C" NOT NULL,
    -- When the limit is unused again if each decision takes its share of a second.
    unused_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key_id)
) WITH (fillfactor = 50);
CALL guard('decision_rates');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE ON decision_rates');
