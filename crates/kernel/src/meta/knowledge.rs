//! `knowledge(query, top_k)`: looks something up in the source that the run was given.

use super::MetaTool;
use crate::wire::message::Class;

pub(super) const TOOL: MetaTool = MetaTool {
    name: "knowledge",
    description: "Look something up in the knowledge that was provided for this task.",
    parameters: r#"{"type":"object","properties":{"query":{"type":"string"},"top_k":{"type":"integer","minimum":1,"maximum":50}},"required":["query"]}"#,
    effect: Class::Read,
    own: true,
    offered: |config| config.sources.knowledge,
    settle: None,
};
