-- A request for a tenant that does not exist is denied. That decision is sealed like any other, in
-- a log without a row in tenants.
ALTER TABLE log_heads DROP CONSTRAINT log_heads_tenant_id_fkey;
