DROP TABLE decision_rates;
ALTER TABLE api_keys DROP COLUMN decisions_per_second;
ALTER TABLE tenants DROP COLUMN decisions_per_second;
