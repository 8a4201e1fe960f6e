DROP INDEX decisions_by_subject, decisions_by_action, decisions_by_decision, decisions_by_reason;
