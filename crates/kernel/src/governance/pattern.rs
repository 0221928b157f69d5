//! Globs over tool names: `*` any run of characters, `?` one, `[…]` one of a set, `[!…]` one of no set.
//!
//! Case-sensitive, over the whole name, with the rules of POSIX `fnmatch` without special cases for dots and slashes: a
//! bracket that is never closed stands for itself, a `]` that comes first belongs to the set, as does a `-` at an end.

/// Whether the pattern fits the whole name. Takes at most the product of both lengths in steps.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some(wild) = pattern.find(['*', '?', '[']) else { return pattern == name };
    let (plain, pattern) = pattern.split_at_checked(wild).unwrap_or_default();
    let Some(name) = name.strip_prefix(plain) else { return false };
    pattern == "*" || walk(pattern, name)
}

/// Whether whatever the pattern `inner` fits is surely fitted by `outer` too.
///
/// Of patterns that both have sets, or of one with a `?` in `outer`, only equal ones are taken to be so.
#[must_use]
pub(super) fn covers(outer: &str, inner: &str) -> bool {
    let name = !inner.contains(['*', '?', '[']);
    let stars = !outer.contains(['?', '[']) && !inner.contains('[');
    // A star of `outer` takes whatever a wildcard of `inner` stands for, and nothing else in it fits a wildcard.
    outer == "*" || outer == inner || ((name || stars) && fits(outer, inner))
}

/// How narrow a pattern is beside others that fit the same name: a name without wildcards before all others, then by how
/// many letters of it must be there.
#[must_use]
pub(super) fn narrowness(pattern: &str) -> (bool, usize) {
    let mut left = pattern;
    let mut letters: usize = 0;
    let mut plain = true;
    while let Some((next, behind)) = token(left) {
        left = behind;
        match next {
            Token::Letter(_) => letters = letters.saturating_add(1),
            Token::Any | Token::One | Token::Set { .. } => plain = false,
        }
    }
    (plain, letters)
}

enum Token<'a> {
    Any,
    One,
    Letter(char),
    Set { negated: bool, inside: &'a str },
}

impl Token<'_> {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Letter(own) => *own == letter,
            Self::Set { negated, inside } => holds(inside, letter) != *negated,
        }
    }
}

/// The last `*` is the only one that ever has to be tried again: what stands before it has found its place.
fn walk(mut pattern: &str, mut name: &str) -> bool {
    let mut retry: Option<(&str, &str)> = None;
    while let Some((letter, behind_letter)) = first(name) {
        match token(pattern) {
            Some((Token::Any, behind)) => {
                pattern = behind;
                retry = Some((behind, name));
            }
            Some((one, behind)) if one.takes(letter) => (pattern, name) = (behind, behind_letter),
            _ => {
                let Some((behind, from)) = retry else { return false };
                let next = first(from).map_or("", |(_, rest)| rest);
                (pattern, name, retry) = (behind, next, Some((behind, next)));
            }
        }
    }
    pattern.chars().all(|left| left == '*')
}

fn first(text: &str) -> Option<(char, &str)> {
    let mut letters = text.chars();
    letters.next().map(|letter| (letter, letters.as_str()))
}

/// What a pattern begins with, and what stands behind it.
fn token(pattern: &str) -> Option<(Token<'_>, &str)> {
    let (letter, rest) = first(pattern)?;
    Some(match letter {
        '*' => (Token::Any, rest),
        '?' => (Token::One, rest),
        '[' => set(rest).unwrap_or((Token::Letter('['), rest)),
        other => (Token::Letter(other), rest),
    })
}

/// The set whose `[` was just read, and what stands behind its `]`; None if it is never closed.
fn set(rest: &str) -> Option<(Token<'_>, &str)> {
    let (negated, body) = match rest.strip_prefix('!') {
        Some(body) => (true, body),
        None => (false, rest),
    };
    let skipped = usize::from(body.starts_with(']'));
    let close = body.get(skipped..)?.find(']')?.saturating_add(skipped);
    let (inside, behind) = (body.get(..close)?, body.get(close.saturating_add(1)..)?);
    Some((Token::Set { negated, inside }, behind))
}

/// Whether a letter is in a set: `a-c` is a range, everything else stands for itself.
fn holds(inside: &str, letter: char) -> bool {
    let mut rest = inside.chars();
    while let Some(low) = rest.next() {
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) => {
                rest = ahead;
                high
            }
            _ => low,
        };
        if low <= letter && letter <= high {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{covers, fits, narrowness};

    #[test]
    fn wildcards_stand_anywhere() {
        assert!(fits("fs.*", "fs.read") && fits("*.read", "fs.read") && fits("f*d", "fs.read") && fits("*", ""));
        assert!(fits("fs.re?d", "fs.read") && !fits("fs.re?d", "fs.rd"));
        assert!(!fits("fs.*", "FS.read") && !fits("fs", "fs.read") && !fits("", "x") && fits("", ""));
    }

    #[test]
    fn a_pattern_covers_another_only_where_it_surely_fits_all_that_the_other_fits() {
        for (outer, inner) in
            [("*", "[a]?"), ("del*", "delete"), ("del*", "del*"), ("d*", "del?t*"), ("[ab]", "a"), ("?", "?")]
        {
            assert!(covers(outer, inner), "{outer} {inner}");
        }
        for (outer, inner) in
            [("delete", "del*"), ("del*", "d*"), ("?", "*"), ("*a-c]", "[a-c]"), ("[ab]", "[a]"), ("a", "b")]
        {
            assert!(!covers(outer, inner), "{outer} {inner}");
        }
    }

    #[test]
    fn names_are_narrower_than_globs_and_letters_than_wildcards() {
        let mut sorted = ["delete", "de[kl]*", "*", "del*", "d*"];
        sorted.sort_by_key(|pattern| narrowness(pattern));
        assert_eq!(sorted, ["*", "d*", "de[kl]*", "del*", "delete"]);
        assert_eq!(narrowness("[a"), (true, 2));
    }

    #[test]
    fn sets_follow_fnmatch() {
        assert!(fits("[a-c]x", "bx") && !fits("[a-c]x", "dx") && fits("[!a-c]x", "dx") && !fits("[!a-c]x", "ax"));
        assert!(fits("[]]", "]") && fits("[a-]", "-") && fits("[-a]", "-") && fits("[", "[") && fits("[a", "[a"));
        assert!(!fits("[c-a]", "b") && fits("[!c-a]", "b"));
    }

    #[test]
    fn many_stars_and_brackets_do_not_explode() {
        let name = "a".repeat(2_000);
        assert!(!fits(&["*", &"[".repeat(2_000)].concat(), &name));
        assert!(fits(&["*", &"[a]".repeat(2_000)].concat(), &name));
        assert!(!fits(&"*a".repeat(200), &(name.clone() + "b")));
        assert!(fits(&"*a".repeat(200), &name));
    }
}
