DROP TRIGGER delete_webhook_endpoints ON tenants;
DROP TRIGGER pause_webhook_endpoints ON api_keys;
DROP TRIGGER pause_webhook_endpoints_insert ON principals;
DROP TRIGGER pause_webhook_endpoints_update ON principals;
DROP TABLE webhook_endpoints;
DROP FUNCTION erase_webhook_endpoint, stop_webhook_endpoint, delete_webhook_endpoints,
    pause_endpoints_of_key, pause_endpoints_of_person, person_excluded;
