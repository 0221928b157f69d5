//! Sentences of a text in any language.

use alloc::vec::Vec;

/// Letters of a word that a full stop behind it may belong to: an abbreviation. Two sentences that are taken for one lose
/// nothing.
const ABBREVIATED: usize = 3;

/// The sentences of a text, each as it was written.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut begin = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let after = at.saturating_add(letter.len_utf8());
        let rest = text.get(after..).unwrap_or_default();
        if letters.peek().is_none() || ends(text.get(begin..at).unwrap_or_default(), letter, rest) {
            let sentence = text.get(begin..after).unwrap_or_default().trim();
            if !sentence.is_empty() {
                out.push(sentence);
            }
            begin = after;
        }
    }
    out
}

/// Whether a sentence ends with this letter.
fn ends(before: &str, letter: char, rest: &str) -> bool {
    match letter {
        '\n' | '。' | '！' | '？' | '؟' | '۔' | '।' | '॥' | '։' | '።' | '။' => true,
        '!' | '?' => rest.starts_with(char::is_whitespace),
        '.' => rest.starts_with(char::is_whitespace) && !is_abbreviation(before) && begins_sentence(rest),
        _ => false,
    }
}

/// Whether the word in front of a full stop is a short one that begins with a capital, or has a full stop in it.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_short = word.chars().nth(ABBREVIATED).is_none() && word.starts_with(char::is_uppercase);
    let rest_is_small = word.chars().skip(1).all(char::is_lowercase);
    (is_short && rest_is_small)
        || (word.contains('.') && word.chars().all(|letter| letter == '.' || letter.is_alphabetic()))
}

/// No sentence begins with a small letter.
fn begins_sentence(rest: &str) -> bool {
    !rest.trim_start().starts_with(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::sentences;

    #[test]
    fn sentences_are_taken_as_they_were_written() {
        let text = "Book it for 3.50 USD. Never before 11am!\n也不要靠窗。OK";
        assert_eq!(sentences(text), ["Book it for 3.50 USD.", "Never before 11am!", "也不要靠窗。", "OK"]);
    }

    #[test]
    fn a_full_stop_of_an_abbreviation_ends_nothing() {
        let whole = [
            "Never book with Dr. Smith on Mondays.",
            "Use e.g. Berlin.",
            "Herr Dr. Li z.B. Montag.",
            "At approx. noon.",
        ];
        assert_eq!(whole.map(|text| sentences(text).len()), [1; 4]);
        assert_eq!(sentences("هل تحجز؟ لا تحجز رحلات. नहीं। ठीक"), ["هل تحجز؟", "لا تحجز رحلات.", "नहीं।", "ठीक"]);
    }
}
