//! Counts what a schema's patterns may become when they are compiled, before they are.

use std::collections::BTreeSet;

use serde_json::Value;

/// In how many pieces all its different patterns may be compiled, at most: each lookaround, reference or possessive
/// repetition ends one.
pub(super) fn pieces(schema: &Value) -> usize {
    let mut found = BTreeSet::new();
    collect(schema, &mut found);
    found.into_iter().map(pieces_of).fold(0, usize::saturating_add)
}

fn collect<'a>(schema: &'a Value, found: &mut BTreeSet<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => {
            found.extend(members.get("pattern").and_then(Value::as_str));
            found.extend(
                members
                    .get("patternProperties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.as_str()),
            );
            members.values().for_each(|member| collect(member, found));
        }
        _ => {}
    }
}

fn pieces_of(pattern: &str) -> usize {
    let marks = pattern.bytes().filter(|byte| matches!(byte, b'(' | b'\\')).count();
    let possessive: usize = ["++", "*+", "?+", "}+"].iter().map(|mark| pattern.matches(mark).count()).sum();
    marks.saturating_add(possessive).saturating_add(1)
}
