ALTER TABLE tenants DROP COLUMN policy_validation, DROP COLUMN context_schema;
