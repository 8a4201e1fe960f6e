-- Called first in each transaction in which an API key reads, in the same snapshot. Once a
-- revocation is committed, the key can't read on any node.
CREATE FUNCTION require_api_key(key text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM api_keys
                   WHERE id = key AND status = 'active'
                     AND (expires_at IS NULL OR expires_at > clock_timestamp())) THEN
        RAISE 'the API key has ended' USING ERRCODE = 'invalid_authorization_specification';
    END IF;
END $$;
