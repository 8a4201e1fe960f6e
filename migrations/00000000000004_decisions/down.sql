DROP TABLE decision_keys, approvals, decisions, fact_blobs;
