//! What content weighs. Counted once, on arrival, in *decide*; the count stands in the record.

use crate::wire::message::{AssistantPart, Block, HeadBlock, Part, RecordedPart, ToolSpec};

/// Counts tokens; the binding hands it in. A pure function.
pub trait Tokens {
    /// Tokens of `text` in the vocabulary of `model`, or a safe upper bound.
    fn count(&self, model: &str, text: &str) -> u64;

    /// What a text of `counted` tokens has at least: all of them where the vocabulary is the model's own.
    fn least(&self, model: &str, counted: u64) -> u64;
}

/// Fixed tokens around a block or a call, above what any provider adds.
const FRAME: u64 = 8;

/// Tokens of an image: the upper end of what providers charge for one that they scale to fit.
const IMAGE: u64 = 1_600;

/// A counter for one model.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "a counter has nothing to show")]
pub struct Scale<'a> {
    /// Who counts.
    pub tokens: &'a dyn Tokens,
    /// In which vocabulary.
    pub model: &'a str,
}

impl Scale<'_> {
    /// Tokens of a text alone.
    #[must_use]
    pub fn text(&self, text: &str) -> u64 {
        if text.is_empty() { 0 } else { self.tokens.count(self.model, text) }
    }

    /// What so many tokens by our count are at least.
    #[must_use]
    pub fn least(&self, counted: u64) -> u64 {
        self.tokens.least(self.model, counted)
    }

    /// Tokens of a block of these parts.
    #[must_use]
    pub fn content(&self, parts: &[Part]) -> u64 {
        parts.iter().fold(FRAME, |sum, part| sum.saturating_add(self.part(part)))
    }

    /// Tokens of an assistant block of these parts.
    #[must_use]
    pub fn reply(&self, parts: &[RecordedPart]) -> u64 {
        parts.iter().fold(FRAME, |sum, part| sum.saturating_add(self.recorded(part)))
    }

    /// Tokens of the head.
    #[must_use]
    pub fn head(&self, head: &HeadBlock) -> u64 {
        let system = self.text(&head.system_stable).saturating_add(self.text(&head.system_knowledge));
        FRAME.saturating_add(system).saturating_add(self.tools(&head.tools))
    }

    /// Tokens of the tools' names, descriptions and schemas.
    #[must_use]
    pub fn tools(&self, tools: &[ToolSpec]) -> u64 {
        tools.iter().fold(0, |sum, tool| {
            let parts = [&tool.name, &tool.description, &tool.parameters];
            parts.iter().fold(sum.saturating_add(FRAME), |sum, text| sum.saturating_add(self.text(text)))
        })
    }

    /// Tokens of a rendered block.
    #[must_use]
    pub fn block(&self, block: &Block<'_>) -> u64 {
        match block {
            Block::Head(head) => self.head(head),
            Block::User(user) => self.content(&user.parts),
            Block::Result(result) => self.content(&result.parts),
            Block::Assistant(said) => said.parts.iter().fold(FRAME, |sum, part| sum.saturating_add(self.said(part))),
        }
    }

    fn said(&self, part: &AssistantPart<'_>) -> u64 {
        match part {
            AssistantPart::Text(text) => self.text(&text.text),
            AssistantPart::Thinking(thinking) => self.text(&thinking.text),
            AssistantPart::Opaque(opaque) => bulk(&opaque.text),
            AssistantPart::Call(call) => {
                FRAME.saturating_add(self.text(&call.name)).saturating_add(self.text(&call.args_text))
            }
        }
    }

    fn part(&self, part: &Part) -> u64 {
        match part {
            Part::Text(text) => self.text(&text.text),
            Part::Image(_) => IMAGE,
            Part::File(file) => bulk(&file.data),
        }
    }

    fn recorded(&self, part: &RecordedPart) -> u64 {
        match part {
            RecordedPart::Text(text) => self.text(&text.text),
            RecordedPart::Thinking(thinking) => self.text(&thinking.text),
            RecordedPart::Opaque(opaque) => bulk(&opaque.text),
            RecordedPart::Call(call) => {
                let text = self.text(&call.name).saturating_add(self.text(&call.args_text));
                FRAME.saturating_add(text)
            }
        }
    }
}

/// Tokens of what no vocabulary fits (base64, signatures): one for three bytes.
fn bulk(data: &str) -> u64 {
    u64::try_from(data.len().div_ceil(3)).unwrap_or(u64::MAX)
}

/// Tokens of the kernel's own words to the model, bounded without a vocabulary: one for three bytes and the frame.
#[must_use]
pub fn own_words(text: &str) -> u64 {
    bulk(text).saturating_add(FRAME)
}
