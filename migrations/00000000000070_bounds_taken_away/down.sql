DROP TRIGGER announce_unbound ON purposes;
DROP TRIGGER announce_unbound ON api_keys;
DROP FUNCTION announce_unbound;
