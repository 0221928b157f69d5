//! Globs over tool names: `*` any run of characters, `?` one, `[…]` one of a set, `[!…]` one of no set.
//!
//! Case-sensitive, over the whole name, with the rules of POSIX `fnmatch` without special cases for dots and slashes: a
//! bracket that is never closed stands for itself, a `]` that comes first belongs to the set, as does a `-` at an end.

use alloc::vec::Vec;

/// Whether the pattern fits the whole name. Takes at most the product of both lengths in steps.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some(wild) = pattern.find(['*', '?', '[']) else { return pattern == name };
    let (plain, pattern) = pattern.split_at_checked(wild).unwrap_or_default();
    let Some(name) = name.strip_prefix(plain) else { return false };
    if pattern == "*" {
        return true;
    }
    let letters: Vec<char> = name.chars().collect();
    walk(&parse(pattern), &letters)
}

enum Token {
    Any,
    One,
    Letter(char),
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl Token {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Letter(own) => *own == letter,
            Self::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| *low <= letter && letter <= *high) != *negated
            }
        }
    }
}

/// The last `*` is the only one that ever has to be tried again: what stands before it has found its place.
fn walk(tokens: &[Token], letters: &[char]) -> bool {
    let (mut token, mut letter) = (0_usize, 0_usize);
    let mut retry: Option<(usize, usize)> = None;
    while letter < letters.len() {
        let (at, current) = (tokens.get(token), letters.get(letter));
        match (at, current) {
            (Some(Token::Any), _) => {
                token = token.saturating_add(1);
                retry = Some((token, letter));
            }
            (Some(one), Some(current)) if one.takes(*current) => {
                token = token.saturating_add(1);
                letter = letter.saturating_add(1);
            }
            _ => {
                let Some((behind, from)) = retry else { return false };
                let next = from.saturating_add(1);
                (token, letter, retry) = (behind, next, Some((behind, next)));
            }
        }
    }
    tokens.iter().skip(token).all(|left| matches!(left, Token::Any))
}

fn parse(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        tokens.push(match letter {
            '*' => Token::Any,
            '?' => Token::One,
            '[' => match set(rest) {
                Some((token, behind)) => {
                    rest = behind;
                    token
                }
                None => Token::Letter('['),
            },
            other => Token::Letter(other),
        });
    }
    tokens
}

/// The set whose `[` was just read, and what stands behind its `]`; None if it is never closed.
fn set(rest: &str) -> Option<(Token, &str)> {
    let (negated, body) = match rest.strip_prefix('!') {
        Some(body) => (true, body),
        None => (false, rest),
    };
    let skipped = usize::from(body.starts_with(']'));
    let close = body.get(skipped..)?.find(']')?.saturating_add(skipped);
    let (inside, behind) = (body.get(..close)?, body.get(close.saturating_add(1)..)?);
    Some((Token::Set { negated, ranges: ranges(inside) }, behind))
}

fn ranges(inside: &str) -> Vec<(char, char)> {
    let letters: Vec<char> = inside.chars().collect();
    let mut ranges = Vec::new();
    let mut rest = letters.as_slice();
    loop {
        rest = match rest {
            [low, '-', high, behind @ ..] => {
                ranges.push((*low, *high));
                behind
            }
            [one, behind @ ..] => {
                ranges.push((*one, *one));
                behind
            }
            [] => return ranges,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn wildcards_stand_anywhere() {
        assert!(fits("fs.*", "fs.read") && fits("*.read", "fs.read") && fits("f*d", "fs.read") && fits("*", ""));
        assert!(fits("fs.re?d", "fs.read") && !fits("fs.re?d", "fs.rd"));
        assert!(!fits("fs.*", "FS.read") && !fits("fs", "fs.read") && !fits("", "x") && fits("", ""));
    }

    #[test]
    fn sets_follow_fnmatch() {
        assert!(fits("[a-c]x", "bx") && !fits("[a-c]x", "dx") && fits("[!a-c]x", "dx") && !fits("[!a-c]x", "ax"));
        assert!(fits("[]]", "]") && fits("[a-]", "-") && fits("[-a]", "-") && fits("[", "[") && fits("[a", "[a"));
        assert!(!fits("[c-a]", "b") && fits("[!c-a]", "b"));
    }

    #[test]
    fn many_stars_do_not_explode() {
        let name = "a".repeat(2_000);
        assert!(!fits(&"*a".repeat(200), &(name.clone() + "b")));
        assert!(fits(&"*a".repeat(200), &name));
    }
}
