//! Content, replies and rendered blocks: what the prompt is made of.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::plain;

/// Plain text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
}

/// An image: base64 data with its media type, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Media type of `data`.
    #[serde(default, skip_serializing_if = "plain")]
    pub media_type: String,
    /// Base64.
    #[serde(default, skip_serializing_if = "plain")]
    pub data: String,
    /// Address.
    #[serde(default, skip_serializing_if = "plain")]
    pub url: String,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Media type of `data`.
    pub media_type: String,
    /// Base64.
    pub data: String,
    /// File name.
    #[serde(default, skip_serializing_if = "plain")]
    pub name: String,
}

tagged! {
    /// A part of content.
    Part { Text(Text) = "text", Image(Image) = "image", File(File) = "file" }
}

/// Validation passed. `text` is the validated JSON; none means the text as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ok {
    /// The validated JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Validation failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Err {
    /// An error kind: `unknown_tool`, `invalid_arguments`, `invalid_output`.
    pub kind: String,
    /// What is wrong, for the model.
    pub message: String,
}

tagged! {
    /// The outcome of a validation, which the host does.
    Validated { Ok(Ok) = "ok", Err(Err) = "err" }
}

/// Visible reasoning of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The text.
    pub text: String,
}

/// A provider's artefact that must be replayed byte-exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// Whose it is.
    pub dialect: String,
    /// JSON text of that dialect.
    pub text: String,
}

/// A tool call as the host hands it in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPart {
    /// The provider's id; may be empty and may repeat.
    pub wire_id: String,
    /// The tool's name.
    pub name: String,
    /// The model's own argument text.
    pub args_text: String,
    /// What validation made of it.
    pub validated: Validated,
}

tagged! {
    /// A part of a reply.
    ReplyPart { Text(Text) = "text", Thinking(Thinking) = "thinking", Call(CallPart) = "call", Opaque(Opaque) = "opaque" }
}

/// A tool call as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// Unique in the session.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The model's own argument text.
    pub args_text: String,
    /// What validation made of it.
    pub validated: Validated,
    /// The provider's id, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<String>,
}

tagged! {
    /// A part of a recorded reply.
    RecordedPart {
        Text(Text) = "text", Thinking(Thinking) = "thinking", Call(RecordedCall) = "call", Opaque(Opaque) = "opaque",
    }
}

/// Tokens of one model call. `input` includes `cached`, `output` includes `reasoning`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Part of `input` read from the provider's cache.
    #[serde(default, skip_serializing_if = "plain")]
    pub cached: u64,
    /// Part of `input` written to the provider's cache.
    #[serde(default, skip_serializing_if = "plain")]
    pub cache_write: u64,
    /// Part of `output` that was reasoning.
    #[serde(default, skip_serializing_if = "plain")]
    pub reasoning: u64,
}

impl Usage {
    /// Adds another one to it.
    pub fn add(&mut self, usage: &Self) {
        self.input = self.input.saturating_add(usage.input);
        self.output = self.output.saturating_add(usage.output);
        self.cached = self.cached.saturating_add(usage.cached);
        self.cache_write = self.cache_write.saturating_add(usage.cache_write);
        self.reasoning = self.reasoning.saturating_add(usage.reasoning);
    }
}

words! {
    /// What a crash means for a tool that had begun.
    #[derive(Default)]
    Class {
        /// It only reads: run again.
        Read = "read",
        /// Safe under the same key: run again with it.
        Idempotent = "idempotent",
        /// Never run again by itself.
        #[default]
        Once = "once",
    }
}

/// Something about a model call that its caller should know, and that is no failure: a field that was dropped, another
/// model that answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// A stable code.
    pub code: String,
    /// A text for people.
    pub message: String,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON schema text.
    pub parameters: String,
    /// What a crash means.
    #[serde(default, skip_serializing_if = "plain")]
    pub effect: Class,
    /// Whether calling it puts a sub-agent to work.
    #[serde(default, skip_serializing_if = "plain")]
    pub agent: bool,
}

/// A full result that is kept outside the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// Its name in the session's blob store.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its size in tokens.
    pub tokens: u64,
}

/// What a tool call came to. `error_kind` is empty for a good result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The content.
    pub parts: Vec<Part>,
    /// Empty, or the kind of error.
    #[serde(default, skip_serializing_if = "plain")]
    pub error_kind: String,
    /// Where the full result is, if `parts` is a preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobRef>,
}

/// A call inside an assistant block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBlock<'a> {
    /// Unique in the session.
    pub id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// Always the text of a JSON object.
    pub args_text: Cow<'a, str>,
}

tagged! {
    /// A part of an assistant block.
    AssistantPart<'a> {
        Text(Cow<'a, Text>) = "text", Thinking(Cow<'a, Thinking>) = "thinking", Call(CallBlock<'a>) = "call",
        Opaque(Cow<'a, Opaque>) = "opaque",
    }
}

/// Slots 1 and 2 and the tools, sorted by name; fixed for the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadBlock {
    /// Slot 1.
    pub system_stable: String,
    /// Slot 2.
    pub system_knowledge: String,
    /// The tools, sorted by name.
    pub tools: Vec<ToolSpec>,
}

/// User-side content: `turns[0]`, a later goal, or a delta.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserBlock<'a> {
    /// The content.
    pub parts: Cow<'a, [Part]>,
}

/// What the model said, in wire order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantBlock<'a> {
    /// The parts.
    pub parts: Vec<AssistantPart<'a>>,
    /// The dialect that it came in.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub dialect: Cow<'a, str>,
    /// The model that said it.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub model: Cow<'a, str>,
    /// Whether what stood before it was rewritten since: artefacts that are bound to it hold no longer.
    #[serde(default, skip_serializing_if = "plain")]
    pub rebased: bool,
}

/// One tool result, directly behind its assistant block, in call order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultBlock<'a> {
    /// The call's id.
    pub call_id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The content.
    pub parts: Cow<'a, [Part]>,
    /// Whether it is an error.
    #[serde(default, skip_serializing_if = "plain")]
    pub is_error: bool,
}

tagged! {
    /// A rendered block. Block 0 is always the head.
    Block<'a> {
        Head(HeadBlock) = "head", User(UserBlock<'a>) = "user", Assistant(AssistantBlock<'a>) = "assistant",
        Result(ResultBlock<'a>) = "result",
    }
}
