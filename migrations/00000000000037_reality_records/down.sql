DROP TRIGGER announce_moved ON stable_drift_events;
DROP TRIGGER announce_detected ON stable_drift_events;
DROP FUNCTION announce_drift;
DROP TABLE reality_feeding;
DROP TRIGGER raise_version ON reality_anchors;
DROP FUNCTION raise_anchor_version;
