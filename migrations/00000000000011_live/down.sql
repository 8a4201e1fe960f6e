DROP TRIGGER tell_news ON decision_reports;
DROP TRIGGER tell_news ON approvals;
DROP FUNCTION tell_decision_news;
