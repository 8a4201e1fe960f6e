DROP TRIGGER settle ON api_keys;
DROP TABLE stable_drift_events, reality_overrides, reality_coupling_checks, reality_heads,
    reality_snapshots, reality_anchors;
DROP FUNCTION drift_applies_anew, end_overrides, settle_feeder, settle_anchor, settle_written, settle_reality, reality_counts;
