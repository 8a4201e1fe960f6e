DROP TABLE api_keys;
DROP TABLE service_secrets;
DROP TABLE key_rotations;
DROP TABLE signing_keys;
DROP FUNCTION keep_signing_key;
