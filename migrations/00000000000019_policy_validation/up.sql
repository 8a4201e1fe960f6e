-- What a tenant's policies are validated against in addition to its tools, and how strictly.
ALTER TABLE tenants
    ADD COLUMN policy_validation text NOT NULL DEFAULT 'enforce'
        CHECK (policy_validation IN ('enforce', 'warn')),
    ADD COLUMN context_schema jsonb;
