-- A request about a tenant that does not exist is denied, and that decision is sealed like any other.
ALTER TABLE log_heads DROP CONSTRAINT log_heads_tenant_id_fkey;
