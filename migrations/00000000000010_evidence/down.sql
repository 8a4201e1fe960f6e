DROP INDEX approvals_used_by;
DROP TABLE decision_reports, replay_proofs, evidence_packs, log_nodes, log_heads;
ALTER TABLE tenants DROP COLUMN auto_seal;
