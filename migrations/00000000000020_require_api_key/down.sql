DROP FUNCTION require_api_key(text);
