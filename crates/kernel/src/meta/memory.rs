//! `memory(query, top_k)`: searches what is remembered of earlier sessions.

use super::MetaTool;
use crate::wire::message::Class;

pub(super) const TOOL: MetaTool = MetaTool {
    name: "memory",
    description: "Search what is remembered of earlier conversations.",
    parameters: r#"{"type":"object","properties":{"query":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":50}},"required":["query"]}"#,
    effect: Class::Read,
    own: true,
    offered: |config| config.sources.memory,
    settle: None,
};
