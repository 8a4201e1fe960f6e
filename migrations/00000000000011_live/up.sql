-- Notifies the streams that watch held decisions when an approval changes its state or an outcome
-- is reported. The payload is the approval's or the decision's id; streams then read the details.

CREATE FUNCTION tell_decision_news() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('decision_news', to_jsonb(NEW) ->> TG_ARGV[0]);
    RETURN NULL;
END $$;

CREATE TRIGGER tell_news AFTER UPDATE OF state ON approvals
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION tell_decision_news('id');
CREATE TRIGGER tell_news AFTER INSERT ON decision_reports
    FOR EACH ROW EXECUTE FUNCTION tell_decision_news('decision_id');
