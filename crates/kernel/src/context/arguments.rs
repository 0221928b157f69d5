//! The model's argument text, made safe to send back.

use alloc::borrow::Cow;
use alloc::string::String;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// How deep arguments may nest that are sent back as they are.
const DEPTH: u32 = 100;

/// Whether `text` is one JSON text. Numbers of any size pass: nothing is converted.
#[must_use]
pub fn is_json(text: &str) -> bool {
    let mut reader = serde_json::Deserializer::from_str(text);
    IgnoredAny::deserialize(&mut reader).is_ok() && reader.end().is_ok()
}

/// The text of a JSON object: the model's own if it is one, `{}` for nothing, else the text inside an object.
#[must_use]
pub fn object_text(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return Cow::Borrowed("{}");
    }
    if trimmed.starts_with('{') && is_json(trimmed) && !is_deeper(trimmed, DEPTH) {
        return Cow::Borrowed(text);
    }
    let mut wrapped = String::from("{\"invalid_arguments\":");
    wrapped.push_str(&quoted(text));
    wrapped.push('}');
    Cow::Owned(wrapped)
}

/// Whether JSON nests deeper than `limit`. Readers of the services refuse what is far below any real call's need.
fn is_deeper(json: &str, limit: u32) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_u32, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth = depth.saturating_add(1),
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{is_json, object_text};

    #[test]
    fn an_object_stays_byte_for_byte() {
        let text = r#"{"id": 123456789012345678901234567890, "x": 1e400, "y": 0.1, "y": 2}"#;
        assert_eq!(object_text(text), text);
    }

    #[test]
    fn nothing_and_null_become_an_empty_object() {
        assert_eq!(["", " \n", "null", " null "].map(object_text), ["{}"; 4]);
    }

    #[test]
    fn what_is_no_object_is_kept_as_text_inside_one() {
        for text in ["[1]", "12", "{\"a\":1", "{\"a\":1}{\"b\":2}", "{\"a\":NaN}", "\u{1}\""] {
            let wrapped = object_text(text).into_owned();
            assert!(wrapped.starts_with("{\"invalid_arguments\":") && is_json(&wrapped), "{wrapped}");
        }
    }

    #[test]
    fn nesting_is_kept_up_to_the_limit_and_wrapped_beyond_it_without_a_deep_stack() {
        let nested = |depth: usize| alloc::format!("{{\"[a\\\"\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(object_text(&nested(99)), nested(99));
        for depth in [100, 100_000] {
            assert!(object_text(&nested(depth)).starts_with("{\"invalid_arguments\":"));
        }
    }
}
