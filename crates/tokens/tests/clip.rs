//! Shortening by tokens.

#![allow(clippy::arithmetic_side_effects, clippy::expect_used)]

use deepstrike_tokens::{Clipped, clip, count};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[test]
fn given_a_text_that_fits_when_clipped_then_nothing_happens() {
    assert_eq!(clip("hello world", "gpt-4o", 2), None);
    assert_eq!(clip("", "gpt-4o", 0), None);
}

#[test]
fn given_a_long_text_when_clipped_then_beginning_and_end_stay_and_the_line_says_how_much_is_missing() {
    let text = (0..1000).map(|n| format!("line {n}\n")).collect::<String>();
    let clipped = clip(&text, "gpt-4o", 100).expect("too long");
    assert!(clipped.text.starts_with("line 0\nline 1\n") && clipped.text.ends_with("line 999\n"), "{}", clipped.text);
    let (head, rest) = clipped.text.split_once("\n[… ").expect("marker");
    let (line, tail) = rest.split_once(" left out …]\n").expect("marker end");
    let missing = text.len() - head.len() - tail.len();
    assert_eq!(line, format!("{missing} of {} characters", text.len()));
    assert_eq!(clipped.total, count(&text, "gpt-4o"));
    assert!((90..=100).contains(&count(&clipped.text, "gpt-4o")));
}

#[test]
fn given_every_small_limit_when_clipped_then_never_above_it_and_on_character_boundaries() {
    for k in 0..4 {
        let text = "a".repeat(k) + &"中🛡é".repeat(200);
        for limit in 0..400 {
            for model in ["gpt-4o", "claude"] {
                let clipped = clip(&text, model, limit).expect("too long");
                assert!(count(&clipped.text, model) <= limit, "{model} {limit} {k}");
                assert_eq!(clipped.total, count(&text, model));
            }
        }
    }
}

#[test]
fn given_huge_texts_when_clipped_then_most_of_the_room_is_used() {
    for text in ["中".repeat(300_000), "🛡".repeat(300_000), "a".repeat(3_000_000), " ".repeat(3_000_000)] {
        let clipped = clip(&text, "gpt-4o", 2000).expect("too long");
        assert!((1900..=2000).contains(&count(&clipped.text, "gpt-4o")), "{}", count(&clipped.text, "gpt-4o"));
        assert!(clipped.text.contains(" characters left out …]"));
    }
}

#[test]
fn given_a_limit_below_the_line_when_clipped_then_a_sign_or_nothing_is_left() {
    let text = "word ".repeat(100);
    let left = |limit| clip(&text, "gpt-4o", limit).map(|Clipped { text, .. }| text);
    assert_eq!((left(0), left(1)), (Some(String::new()), Some("…".to_owned())));
}

#[test]
fn given_any_text_and_limit_when_clipped_then_never_above_the_limit() {
    let asked = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases.min(500) } else { 32 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..asked };
    let held = TestRunner::new(config).run(&("(\\PC|\\s){0,4000}", 0_u64..3000), |(text, limit)| {
        match clip(&text, "gpt-4o", limit) {
            Some(clipped) => {
                prop_assert!(count(&clipped.text, "gpt-4o") <= limit);
                prop_assert!(clipped.total > limit);
            }
            None => prop_assert!(count(&text, "gpt-4o") <= limit),
        }
        Ok(())
    });
    assert_eq!(held.map_err(|failure| failure.to_string()), Ok(()));
}
