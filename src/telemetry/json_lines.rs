//! Log lines as JSON objects.

use std::fmt::{self, Debug, Write};

use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormattedFields,
        format::{DefaultFields, Writer},
        time::{FormatTime, SystemTime},
    },
    registry::{LookupSpan, Scope},
};

/// Writes a line as docs/reference/logs.md describes: the time, the level, the fields, the target,
/// and the spans around the line.
pub(super) struct JsonLines;

impl<S> FormatEvent<S, DefaultFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, DefaultFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut at = String::new();
        SystemTime.format_time(&mut Writer::new(&mut at))?;
        let mut line = Members(Map::new());
        line.put("timestamp", at);
        line.put("level", event.metadata().level().as_str());
        event.record(&mut line);
        line.put("target", event.metadata().target());
        let spans = context.event_scope().into_iter().flat_map(Scope::from_root);
        let spans: Vec<Value> = spans
            .map(|span| {
                let extensions = span.extensions();
                let fields = extensions.get::<FormattedFields<DefaultFields>>();
                let fields = fields.map(|fields| fields.fields.clone()).unwrap_or_default();
                serde_json::json!({"name": span.name(), "fields": fields})
            })
            .collect();
        if !spans.is_empty() {
            line.put("spans", spans);
        }
        writeln!(writer, "{}", Value::Object(line.0))
    }
}

/// The members of a line. A field cannot replace another one, as `level`.
struct Members(Map<String, Value>);

impl Members {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.entry(name).or_insert_with(|| value.into());
    }
}

impl Visit for Members {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = write!(text, "{value:?}");
        self.put(field.name().trim_start_matches("r#"), text);
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use chrono::Utc;
    use parking_lot::Mutex;
    use serde_json::json;
    use tracing::Level;
    use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_line_is_one_object_with_typed_fields() {
        let lines = Lines::default();
        let layer = tracing_subscriber::fmt::layer().with_writer(lines.clone());
        let subscriber = tracing_subscriber::registry().with(layer.event_format(JsonLines));
        tracing::subscriber::with_default(subscriber, || {
            let error = io::Error::other("no \"route\"\nto host");
            tracing::event!(Level::WARN, %error, count = 3, is_new = true, level = "x", "lost it");
            tracing::info_span!("outer", worker.name = "w")
                .in_scope(|| tracing::event!(Level::INFO, "inside"));
        });
        let written = String::from_utf8(lines.0.lock().clone()).unwrap();
        let read: Vec<Value> =
            written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read.len(), 2);
        let at = read[0]["timestamp"].as_str().unwrap();
        assert!(at.len() == 27 && at.ends_with('Z') && at.parse::<chrono::DateTime<Utc>>().is_ok());
        let expected = json!({
            "timestamp": at,
            "level": "WARN",
            "message": "lost it",
            "error": "no \"route\"\nto host",
            "count": 3,
            "is_new": true,
            "target": module_path!(),
        });
        assert_eq!(read[0], expected);
        assert_eq!(read[1]["spans"][0]["name"], "outer");
    }
}
