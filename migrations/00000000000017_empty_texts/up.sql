-- An empty text is now a value like any other: if a field has a rule (a closed set, a pattern, an
-- e-mail address, an identifier), the empty text is refused. Until now it counted as absent and was
-- stored. This migration repairs such rows. A repair never permits more than before; if no value
-- ensures that, the record is suspended. Each repair is in the history and in the change log.
SELECT set_config('role', authority_role('system'), true);
SELECT set_config('authority.actor', 'agent-authority: migration 22', true);

-- ## Tenants

-- An empty organisation matched every token with an empty organisation.
UPDATE tenants SET idp_org_id = NULL, updated_at = clock_timestamp() WHERE idp_org_id = '';
UPDATE tenants SET owner_email = NULL, updated_at = clock_timestamp() WHERE owner_email = '';
UPDATE tenants SET state = 'suspended', updated_at = clock_timestamp() WHERE state = '';
-- A tightening with an empty field let no request pass. Without the field it applies to all
-- requests, but may let approved ones pass. The tenant is therefore suspended until the owner has
-- checked the tightening.
UPDATE tenants SET
    state = CASE state WHEN 'deleted' THEN state ELSE 'suspended' END,
    gate = jsonb_set(gate, '{tightenings}', (
        SELECT jsonb_agg(rule || jsonb_build_object(
            'risk_tier', nullif(rule ->> 'risk_tier', ''),
            'effect_class', nullif(rule ->> 'effect_class', ''),
            'undoing', nullif(rule ->> 'undoing', '')) ORDER BY place)
        FROM jsonb_array_elements(gate -> 'tightenings') WITH ORDINALITY AS each (rule, place))),
    updated_at = clock_timestamp()
WHERE EXISTS (
    SELECT FROM jsonb_array_elements(gate -> 'tightenings') AS rule
    WHERE '' IN (rule ->> 'risk_tier', rule ->> 'effect_class', rule ->> 'undoing'));

-- ## Principals

UPDATE principals SET email = NULL, updated_at = clock_timestamp() WHERE email = '';
UPDATE principals SET external_subject = NULL, updated_at = clock_timestamp()
WHERE external_subject = '';
-- Without a name, no request can refer to the agent as its subject. The agent is suspended.
UPDATE principals SET
    name = NULL,
    state = CASE state WHEN 'revoked' THEN state ELSE 'suspended' END,
    updated_at = clock_timestamp()
WHERE name = '';
UPDATE principals SET state = 'suspended', updated_at = clock_timestamp() WHERE state = '';

-- ## Delegations

-- No request was within an empty bound, but NULL would mean an unlimited delegation. The delegation
-- stays unchanged but is suspended.
UPDATE delegations SET state = 'suspended', updated_at = clock_timestamp()
WHERE state = 'active' AND '' IN (max_amount, currency, max_risk_tier);

-- ## Tools and models: the riskiest possible meaning

UPDATE models SET risk_tier = 'unacceptable', updated_at = clock_timestamp() WHERE risk_tier = '';
UPDATE models SET endpoint = NULL, updated_at = clock_timestamp() WHERE endpoint = '';
UPDATE tools SET access_level = 'owner', updated_at = clock_timestamp() WHERE access_level = '';
-- A tool with an empty field could not be read, and every request with it was denied.
UPDATE tools SET
    action_declaration = action_declaration
        || CASE action_declaration ->> 'effect_class'
            WHEN '' THEN '{"effect_class": "safety_critical"}'::jsonb ELSE '{}' END
        || CASE action_declaration ->> 'reversibility'
            WHEN '' THEN '{"reversibility": "irreversible"}'::jsonb ELSE '{}' END,
    action_risk_classification = coalesce(action_risk_classification, '{}')
        || '{"risk_tier": "unacceptable"}'
        || CASE action_risk_classification ->> 'required_oversight_mode'
            WHEN '' THEN '{"required_oversight_mode": "two_person_with_legal"}'::jsonb
            ELSE '{}' END,
    updated_at = clock_timestamp()
WHERE '' IN (action_declaration ->> 'effect_class', action_declaration ->> 'reversibility',
             action_risk_classification ->> 'risk_tier',
             action_risk_classification ->> 'required_oversight_mode');

-- ## Resources: policies read their sensitivity

UPDATE resources SET sensitivity = 'restricted', updated_at = clock_timestamp()
WHERE sensitivity = '';

-- ## Fields that decisions do not read

UPDATE billing_accounts SET state = 'active', updated_at = clock_timestamp() WHERE state = '';
UPDATE billing_accounts SET currency = NULL, updated_at = clock_timestamp() WHERE currency = '';
UPDATE domains SET verification_method = NULL, updated_at = clock_timestamp()
WHERE verification_method = '';
UPDATE external_apps SET base_url = NULL, updated_at = clock_timestamp() WHERE base_url = '';
UPDATE audit_streams SET state = 'active', updated_at = clock_timestamp() WHERE state = '';
UPDATE audit_streams SET target = NULL, updated_at = clock_timestamp() WHERE target = '';
UPDATE workspaces SET slug = NULL, updated_at = clock_timestamp() WHERE slug = '';

RESET ROLE;
