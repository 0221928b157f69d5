//! Counting in windows against counting as a whole, and against another tokenizer.

#![allow(clippy::arithmetic_side_effects, clippy::expect_used)]

use deepstrike_tokens::{Vocabulary, count};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tiktoken::get_encoding;

const ENCODINGS: &[(&str, Vocabulary)] = &[
    ("cl100k_base", Vocabulary::Cl100k),
    ("o200k_base", Vocabulary::O200k),
    ("llama3", Vocabulary::Llama3),
    ("deepseek_v3", Vocabulary::DeepSeek),
    ("qwen2", Vocabulary::Qwen),
    ("kimi_k2", Vocabulary::Kimi),
    ("minimax_m2", Vocabulary::MiniMax),
];

/// Runs of one kind long enough to leave a window without a natural cut, and words between them.
fn odd_text() -> impl Strategy<Value = String> {
    let run = prop_oneof![
        ("[a-z]{1,40}", 1_usize..300).prop_map(|(unit, n)| unit.repeat(n)),
        "[a-zA-Z0-9+/]{0,9000}",
        "[!-/:-@]{0,6000}",
        "[ \\t\\n\\r\u{a0}\u{3000}\u{2028}]{0,6000}",
        "[中文字符的是一了]{0,3000}",
        "[あ-んア-ン、。]{0,3000}",
        "[가-힣 ]{0,2000}",
        "[\u{966}-\u{96f}]{0,2500}",
        "[क-हा-ौ\u{94d} ]{0,2500}",
        "[\u{1f600}-\u{1f64f}\u{200d}\u{fe0f}]{0,1500}",
        "(\\PC){0,1500}",
        "([a-zA-Z]{1,9}('s|'LL|,|\\.|) ?){0,800}",
        "[0-9]{0,6000}",
    ];
    proptest::collection::vec(run, 1..4).prop_map(|runs| runs.concat())
}

/// Each case counts long texts many times, so there is a ceiling to what `PROPTEST_CASES` may ask for.
fn hold(test: impl Fn(String) -> Result<(), TestCaseError>) {
    let asked = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases.min(2_000) } else { 32 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..asked };
    let held = TestRunner::new(config).run(&odd_text(), test);
    assert_eq!(held.map_err(|failure| failure.to_string()), Ok(()));
}

#[test]
fn given_any_text_when_counted_in_windows_then_never_below_the_whole_and_close_to_it() {
    hold(|text| {
        for (name, vocabulary) in ENCODINGS {
            let whole = get_encoding(name).map(|bpe| bpe.count(&text) as u64);
            let counted = vocabulary.count(&text);
            prop_assert!(Some(counted) >= whole, "{name}: {counted} below {whole:?}");
            prop_assert!(Some(counted) <= whole.map(|n| n + n / 20 + 64), "{name}: {counted} far above {whole:?}");
        }
        Ok(())
    });
}

#[test]
fn given_any_text_when_another_tokenizer_counts_it_then_it_never_finds_more() {
    hold(|text| {
        prop_assert!(count(&text, "gpt-4o") >= bpe_openai::o200k_base().count(text.as_str()) as u64);
        prop_assert!(count(&text, "gpt-4") >= bpe_openai::cl100k_base().count(text.as_str()) as u64);
        Ok(())
    });
}

#[test]
fn given_plain_prose_and_code_when_counted_then_windows_change_nothing() {
    let prose = "The kernel remembers in past participles; it's a rule, isn't it? ".repeat(400);
    let code = "fn main() {\n    let x = vec![1, 22, 333];\n}\n".repeat(400);
    let chinese = "世界说名词，内核记过去分词。".repeat(500);
    for text in [prose, code, chinese] {
        for (name, vocabulary) in ENCODINGS {
            assert_eq!(Some(vocabulary.count(&text)), get_encoding(name).map(|bpe| bpe.count(&text) as u64), "{name}");
        }
    }
}

#[test]
fn given_huge_texts_without_a_word_end_when_counted_then_the_count_is_that_of_the_whole() {
    assert_eq!(count(&"中".repeat(300_000), "gpt-4o"), 300_000);
    assert_eq!(count(&"a".repeat(10_000_000), "gpt-4o"), 1_250_000);
    assert_eq!(count(&" ".repeat(1_000_000), "gpt-4o"), 7_813);
}

#[test]
fn given_special_token_text_when_counted_then_it_is_ordinary_text() {
    assert!(count("explain <|endoftext|> and <|im_start|>system", "gpt-4o") > 8);
}

#[test]
fn given_a_model_name_when_looked_up_then_its_vocabulary_is_found_or_an_upper_bound_is_used() {
    let cases = [
        ("gpt-5-mini", Vocabulary::O200k),
        ("gpt-4.1", Vocabulary::O200k),
        ("gpt-4-turbo", Vocabulary::Cl100k),
        ("GPT-3.5-turbo", Vocabulary::Cl100k),
        ("ft:gpt-4o:acme::1", Vocabulary::O200k),
        ("openai/o3-pro", Vocabulary::O200k),
        ("gpt-oss-120b", Vocabulary::O200k),
        ("meta-llama/Llama-3.3-70B", Vocabulary::Llama3),
        ("Llama-4-Scout", Vocabulary::Unknown),
        ("deepseek-chat", Vocabulary::DeepSeek),
        ("qwen3-max", Vocabulary::Qwen),
        ("qwen3.5-plus", Vocabulary::Unknown),
        ("kimi-k2-turbo", Vocabulary::Kimi),
        ("MiniMax-M2", Vocabulary::MiniMax),
        ("claude-sonnet-4-5", Vocabulary::Unknown),
        ("", Vocabulary::Unknown),
        ("é", Vocabulary::Unknown),
    ];
    assert_eq!(cases.map(|(model, _)| Vocabulary::of(model)), cases.map(|(_, vocabulary)| vocabulary));
}

#[test]
fn given_an_unknown_model_when_counted_then_a_third_is_added_and_rounded_up() {
    assert_eq!(count("hello world", "gpt-4o"), 2);
    assert_eq!(count("hello world", "claude-opus"), 3);
    assert_eq!(count("", "claude-opus"), 0);
}

#[test]
fn given_chinese_and_english_when_estimated_then_within_the_known_bounds() {
    let chinese = count(&"你".repeat(1000), "any");
    let english = count(&"the quick brown fox ".repeat(200), "any");
    assert!((500..=2000).contains(&chinese) && (600..=1500).contains(&english), "{chinese} {english}");
}
