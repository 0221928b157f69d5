//! `recall(ref, offset)`: reads what left the prompt, from the log and the blob store.

use super::{MetaTool, beside_others};
use crate::wire::message::Class;

pub(super) const TOOL: MetaTool = MetaTool {
    name: "recall",
    description: "Read what was left out here, by the ref in its place, from an offset in characters.",
    parameters: r#"{"type":"object","properties":{"ref":{"type":"string"},"offset":{"type":"integer","minimum":0}},"required":["ref"]}"#,
    effect: Class::Read,
    own: true,
    offered: beside_others,
    settle: None,
};
