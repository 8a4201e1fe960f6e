ALTER TABLE log_heads ADD CONSTRAINT log_heads_tenant_id_fkey
    FOREIGN KEY (tenant_id) REFERENCES tenants NOT VALID;
