//! Which vocabulary a model reads with.

use tiktoken::{CoreBpe, get_encoding};

use crate::count::count_linear;

/// A vocabulary, or the lack of a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// OpenAI's of GPT-4 and before.
    Cl100k,
    /// OpenAI's since GPT-4o.
    O200k,
    /// Llama 3.
    Llama3,
    /// DeepSeek V3 and later.
    DeepSeek,
    /// Qwen 2 to 3.
    Qwen,
    /// Kimi K2 and later.
    Kimi,
    /// MiniMax M2.
    MiniMax,
    /// Not embedded: o200k and 35 % more.
    Unknown,
}

/// Model names by prefix, the first that fits, letter case ignored. A later generation whose vocabulary is another one
/// stands before the family's name as `Unknown`: too high is safe, too low is not.
const PREFIXES: &[(&str, Vocabulary)] = &[
    ("gpt-4o", Vocabulary::O200k),
    ("gpt-4.", Vocabulary::O200k),
    ("gpt-4", Vocabulary::Cl100k),
    ("gpt-3", Vocabulary::Cl100k),
    ("text-embedding-", Vocabulary::Cl100k),
    ("gpt-", Vocabulary::O200k),
    ("chatgpt-", Vocabulary::O200k),
    ("codex-", Vocabulary::O200k),
    ("o1", Vocabulary::O200k),
    ("o3", Vocabulary::O200k),
    ("o4", Vocabulary::O200k),
    ("llama-3", Vocabulary::Llama3),
    ("llama3", Vocabulary::Llama3),
    ("meta-llama-3", Vocabulary::Llama3),
    ("deepseek-r1-distill", Vocabulary::Unknown),
    ("deepseek-coder", Vocabulary::Unknown),
    ("deepseek-llm", Vocabulary::Unknown),
    ("deepseek-v2", Vocabulary::Unknown),
    ("deepseek", Vocabulary::DeepSeek),
    ("qwen3.", Vocabulary::Unknown),
    ("qwen1", Vocabulary::Unknown),
    ("qwen", Vocabulary::Qwen),
    ("qwq", Vocabulary::Qwen),
    ("kimi-vl", Vocabulary::Unknown),
    ("kimi", Vocabulary::Kimi),
    ("minimax", Vocabulary::MiniMax),
];

impl Vocabulary {
    /// The vocabulary of the model named `model`: `ft:` before the name and a path such as `openai/` are passed over.
    #[must_use]
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let name = name.strip_prefix("ft:").unwrap_or(name);
        PREFIXES
            .iter()
            .find(|(prefix, _)| begins_with(name, prefix))
            .map_or(Self::Unknown, |&(_, vocabulary)| vocabulary)
    }

    /// Tokens of `text`.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        let counted = match self.encoding() {
            Some(encoding) if !text.is_empty() => count_linear(encoding, text),
            Some(_) => 0,
            None => text.len() as u64,
        };
        match self {
            Self::Unknown => counted.saturating_mul(135).div_ceil(100),
            _ => counted,
        }
    }

    /// What a text of `counted` tokens has at least: where the vocabulary is not embedded, the count without its surplus.
    #[must_use]
    pub fn least(self, counted: u64) -> u64 {
        match self {
            Self::Unknown => counted.saturating_mul(100) / 135,
            _ => counted,
        }
    }

    /// A count that `text` cannot exceed, without reading it: no token is shorter than a byte.
    #[must_use]
    pub fn at_most(self, text: &str) -> u64 {
        let bytes = text.len() as u64;
        match self {
            Self::Unknown => bytes.saturating_mul(135).div_ceil(100),
            _ => bytes,
        }
    }

    /// The embedded tables, decoded on first use and kept. None cannot be while the feature list names them all.
    fn encoding(self) -> Option<&'static CoreBpe> {
        get_encoding(match self {
            Self::Cl100k => "cl100k_base",
            Self::O200k | Self::Unknown => "o200k_base",
            Self::Llama3 => "llama3",
            Self::DeepSeek => "deepseek_v3",
            Self::Qwen => "qwen2",
            Self::Kimi => "kimi_k2",
            Self::MiniMax => "minimax_m2",
        })
    }
}

fn begins_with(name: &str, prefix: &str) -> bool {
    name.as_bytes().get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
}
