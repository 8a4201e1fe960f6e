-- Adds earlier activations, as far as the history has them: an active version of the record after a
-- version that was inactive or had another text. They have no reason. Versions written since
-- migration 57 have the field `activated_at`, and their activations are recorded already.

SELECT set_config('role', authority_role('system'), true);
INSERT INTO policy_activations (tenant_id, policy_id, version, at, by)
SELECT tenant_id, entity_id, text_version, valid_from, actor
FROM (
    SELECT v.tenant_id, v.entity_id, v.valid_from, v.actor, v.body,
           (v.body ->> 'version')::integer AS text_version,
           v.body ->> 'state' AS state,
           lag(v.body ->> 'version') OVER earlier AS earlier_version,
           lag(v.body ->> 'state') OVER earlier AS earlier_state
    FROM policies p JOIN record_versions v ON v.entity_id = p.id
    WHERE v.table_name = 'policies' AND v.body IS NOT NULL
    WINDOW earlier AS (PARTITION BY v.entity_id ORDER BY v.version)
) AS versions
WHERE state = 'active' AND NOT body ? 'activated_at'
  AND (earlier_state IS DISTINCT FROM 'active' OR earlier_version IS DISTINCT FROM body ->> 'version');
SELECT set_config('role', 'none', true);
