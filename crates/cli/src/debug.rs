//! What `-d` shows: every script that runs on a machine and what it answers, as text, without secrets.

use std::{fmt, io, mem};

use tracing::{Event, Subscriber, field::Field};
use tracing_subscriber::{
    field::Visit,
    filter::LevelFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// From now on it is shown on standard error.
pub(crate) fn show() {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .event_format(Shown)
        .with_max_level(LevelFilter::DEBUG);
    subscriber.init();
}

struct Shown;

impl<S, N> FormatEvent<S, N> for Shown
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // What libraries tell of themselves helps nobody here.
        if !event.metadata().target().starts_with("hatchery") {
            return Ok(());
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        writer.write_str(&fields.text())
    }
}

#[derive(Default)]
struct Fields {
    host: String,
    message: String,
    /// Other fields of one line.
    short: Vec<String>,
    /// Texts of several lines.
    long: Vec<String>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "host" => value.clone_into(&mut self.host),
            "script" | "output" => self.long.push(value.to_owned()),
            name => self.short.push(format!("{name}={value}")),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.short.push(format!("{name}={value:?}")),
        }
    }
}

impl Fields {
    fn text(mut self) -> String {
        let mut first = vec![mem::take(&mut self.host), mem::take(&mut self.message)];
        first.append(&mut self.short);
        first.retain(|word| !word.is_empty());
        let mut text = format!("debug: {}\n", first.join(" "));
        for long in &self.long {
            for line in without_keys(long).lines() {
                text.push_str("  | ");
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// Contents of files are never in a script; should a machine repeat a private key, it is blotted out all the same.
fn without_keys(text: &str) -> String {
    let mut shown = String::new();
    let mut inside = false;
    for line in text.lines() {
        let is_key = line.contains("PRIVATE KEY-----");
        if is_key && line.contains("-----BEGIN") {
            inside = true;
            shown.push_str("********\n");
        }
        if !inside {
            shown.push_str(line);
            shown.push('\n');
        }
        if is_key && line.contains("-----END") {
            inside = false;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_shown_as_text_under_their_machine() {
        let fields = Fields {
            host: "m-1".into(),
            message: "task".into(),
            short: vec!["server=x".into()],
            long: vec!["a\nb\n".into()],
        };
        assert_eq!(fields.text(), "debug: m-1 task server=x\n  | a\n  | b\n");
    }

    #[test]
    fn a_private_key_is_blotted_out() {
        let text = "a\n-----BEGIN EC PRIVATE KEY-----\nsecret\n-----END EC PRIVATE KEY-----\nb\n";
        assert_eq!(without_keys(text), "a\n********\nb\n");
        // Also one that is cut off.
        let text = "-----BEGIN PRIVATE KEY-----\nsecret\n";
        assert_eq!(without_keys(text), "********\n");
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n";
        assert_eq!(without_keys(certificate), certificate);
    }
}
