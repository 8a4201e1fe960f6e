DROP TRIGGER note_activation ON policies;
DROP FUNCTION note_activation;
DROP TABLE policy_activations;
ALTER TABLE policies DROP COLUMN activated_at, DROP COLUMN activated_by, DROP COLUMN activation_reason;
