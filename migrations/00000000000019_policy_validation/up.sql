-- How strictly a tenant's policies are validated, and the schema of contexts to validate them
-- against in addition to the tools' schemas.
ALTER TABLE tenants
    ADD COLUMN policy_validation text NOT NULL DEFAULT 'enforce'
        CHECK (policy_validation IN ('enforce', 'warn')),
    ADD COLUMN context_schema jsonb;
