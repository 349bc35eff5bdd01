//! Log lines as JSON objects, with the fields of all spans around an event beside its own.

use serde_json::{Map, Value};
use std::fmt::Debug;
use std::io::Write;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use windlass_clock::Clock;

/// Writes a line per event.
pub(super) struct Lines<W> {
    clock: Clock,
    writer: W,
}

impl<W> Lines<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { clock: Clock::real(), writer }
    }
}

/// The fields of a span, kept with it.
struct Fields(Map<String, Value>);

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields(Map::new());
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let meta = event.metadata();
        let mut line = Fields(Map::new());
        line.0.insert("ts".to_owned(), self.clock.now().to_string().into());
        line.0.insert("level".to_owned(), meta.level().as_str().to_lowercase().into());
        line.0.insert("target".to_owned(), meta.target().into());
        // From the outermost in: what is nearer to the event counts.
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.0.extend(fields.0.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        event.record(&mut line);
        let mut text = Value::Object(line.0).to_string();
        text.push('\n');
        // There is nobody to tell that nobody can be told.
        let _ = self.writer.make_writer_for(meta).write_all(text.as_bytes());
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        let name = if field.name() == "message" { "msg" } else { field.name() };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_has_the_fields_of_all_spans_around_it() {
        let paper = Paper::default();
        let written = paper.clone();
        let logging = tracing_subscriber::registry().with(Lines::new(move || paper.clone()));
        tracing::subscriber::with_default(logging, || {
            let _reconcile =
                tracing::info_span!("reconcile", controller = "vault", object = %"shop/v", tries = 0)
                    .entered();
            let _step = tracing::info_span!("step", tries = 2).entered();
            tracing::warn!(ready = false, "a \"line\"\nand more");
        });
        let text = String::from_utf8(written.0.lock().clone()).unwrap();
        let line: Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!(text.lines().count(), 1);
        let has = |name: &str, value: Value| assert_eq!(line[name], value, "{name} in {line}");
        has("msg", "a \"line\"\nand more".into());
        has("level", "warn".into());
        has("controller", "vault".into());
        has("object", "shop/v".into());
        has("tries", 2.into());
        has("ready", false.into());
        assert!(line["ts"].as_str().unwrap().parse::<windlass_clock::Timestamp>().is_ok());
    }

    #[test]
    fn a_word_that_is_no_level_is_not_taken_for_a_part() {
        for fine in ["info", "warn,kube=debug", "off", "a::b=trace"] {
            assert!(super::super::filter(fine).is_ok(), "{fine}");
        }
        for wrong in ["", "debgu", "3", "kube=", "info,kube"] {
            assert!(super::super::filter(wrong).is_err(), "{wrong}");
        }
    }
}
