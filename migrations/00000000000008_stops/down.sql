DROP TABLE quarantines, stop_signals;
