-- What a tenant's policies are held against beside its tools, and how strictly.
ALTER TABLE tenants
    ADD COLUMN policy_validation text NOT NULL DEFAULT 'enforce'
        CHECK (policy_validation IN ('enforce', 'warn')),
    ADD COLUMN context_schema jsonb;
