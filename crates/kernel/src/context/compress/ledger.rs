//! The value ledger: what later calls may need as arguments, found in calls, results and texts that leave.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::Value as Json;

use super::gathered::Gathered;
use crate::wire::task::Value;

/// Characters of a value.
const LONGEST: usize = 80;

/// Whole numbers below it are kept exactly as floating point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Bytes of a text that are looked through.
const LOOKED_THROUGH: usize = 128 * 1024;

/// The label of a value that was found in running text.
pub(super) const MENTIONED: &str = "mentioned";

/// The arguments of a call: all of them, since what was used once is used again.
pub(super) fn arguments(gathered: &mut Gathered, text: &str, seq: u64) {
    if let Some(json) = parsed(text) {
        walk(&json, MENTIONED, &mut |label, value| note(gathered, label, &value, seq));
    }
}

/// A result: the members of a JSON text that have the name of a parameter, or look like a name of something; of other
/// text what looks like one.
pub(super) fn result(gathered: &mut Gathered, content: &str, labels: &[&str], seq: u64) {
    match parsed(content) {
        Some(json) => walk(&json, MENTIONED, &mut |label, value| {
            if is_known(label, labels) || is_name(&value) {
                note(gathered, label, &value, seq);
            }
        }),
        None => text(gathered, content, seq),
    }
}

/// Running text: words that look like the name of something.
pub(super) fn text(gathered: &mut Gathered, text: &str, seq: u64) {
    let end = text.floor_char_boundary(LOOKED_THROUGH);
    for word in text.split_at(end).0.split(|letter: char| letter.is_whitespace() || ",;()[]{}<>\"'`|".contains(letter))
    {
        let word = word.trim_matches(|letter: char| ".:!?*…".contains(letter));
        if is_name(word) {
            note(gathered, MENTIONED, word, seq);
        }
    }
}

fn parsed(text: &str) -> Option<Json> {
    let text = text.trim();
    let may_be = text.starts_with(['{', '[']) && text.len() <= LOOKED_THROUGH;
    may_be.then(|| serde_json::from_str(text).ok()).flatten()
}

/// The texts and numbers of a JSON value with the name of the member that each stands under.
fn walk(json: &Json, label: &str, found: &mut dyn FnMut(&str, String)) {
    match json {
        Json::Object(members) => members.iter().for_each(|(name, member)| {
            // A number in it tells the name of one thing from the name of a member.
            if is_name(name) && name.contains(|letter: char| letter.is_ascii_digit()) {
                found(label, name.clone());
            }
            walk(member, name, found);
        }),
        Json::Array(items) => items.iter().for_each(|item| walk(item, label, found)),
        Json::String(text) => found(label, text.clone()),
        // Beyond these a number is no longer the one that was written.
        Json::Number(number) if number.as_f64().is_some_and(|size| size.abs() < EXACT) || !number.is_f64() => {
            found(label, number.to_string());
        }
        Json::Number(_) | Json::Bool(_) | Json::Null => {}
    }
}

/// Whether a member is called like a parameter: by its name, as one of several of it, or by the end of its name.
#[must_use]
pub(super) fn is_known(label: &str, labels: &[&str]) -> bool {
    let one = label.strip_suffix('s').unwrap_or(label);
    labels.iter().any(|name| {
        *name == label
            || name.strip_prefix(one).is_some_and(|rest| rest.starts_with('_') || rest.is_empty())
            || name.strip_suffix(label).is_some_and(|rest| rest.ends_with('_'))
    })
}

/// Whether a value names one thing: it has letters, and a number or an address.
#[must_use]
pub(super) fn is_particular(value: &str) -> bool {
    let has = |sign: fn(char) -> bool| value.contains(sign);
    has(char::is_alphabetic) && has(|letter| letter.is_ascii_digit() || letter == '@' || letter == '/')
}

/// Whether a word looks like the name of something that a call could need: an address, a path, an id, a date, an amount.
fn is_name(word: &str) -> bool {
    let long_enough = word.len() >= 3 && word.len() <= LONGEST;
    let one_word = !word.contains(char::is_whitespace);
    let has = |sign: fn(char) -> bool| word.contains(sign);
    long_enough
        && one_word
        && (has(|letter| letter.is_ascii_digit())
            || has(|letter| "@/\\".contains(letter))
            || word.chars().all(|letter| letter.is_ascii_uppercase()))
}

fn note(gathered: &mut Gathered, label: &str, value: &str, seq: u64) {
    let value = value.trim();
    if value.chars().nth(1).is_some() && value.chars().nth(LONGEST).is_none() && !value.contains('\n') {
        gathered.value(label, value, seq);
    }
}

/// The ledger as the model reads it: a line for each label, its newest values last.
#[must_use]
pub(super) fn lines(ledger: &[Value]) -> Vec<String> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for value in ledger {
        match lines.iter_mut().find(|(label, _)| *label == value.label) {
            Some((_, line)) => {
                line.push_str(", ");
                line.push_str(&value.value);
            }
            None => lines.push((&value.label, value.value.clone())),
        }
    }
    let told = lines.into_iter().map(|(label, line)| {
        let mut told = label.to_owned();
        told.push_str(": ");
        told.push_str(&line);
        told
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::{arguments, lines, result, text};
    use crate::context::compress::gathered::Gathered;
    use crate::wire::task::Digest;

    #[test]
    fn arguments_results_and_texts_give_their_values_each_once_and_the_newest_last() {
        let mut gathered = Gathered::of(&Digest::default());
        result(&mut gathered, r#"{"user_id":"mia_1","note":"very nice","seats":3,"cabin":"economy"}"#, &["cabin"], 3);
        text(&mut gathered, "Write to a@b.org, before 2026-11-30.", 4);
        arguments(&mut gathered, r#"{"user":"mia_1","bags":[11,12]}"#, 5);
        let told = ["cabin: economy", "mentioned: a@b.org, 2026-11-30", "bags: 11, 12", "user: mia_1"];
        let ledger = gathered.into_parts().ledger;
        assert_eq!(lines(&ledger), told);
        assert_eq!(ledger.last().map(|value| value.seq), Some(5));
    }
}
