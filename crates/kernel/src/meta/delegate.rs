//! `delegate(task, role, tools)`: puts a sub-agent to work. It acts, so governance judges it like any tool.

use super::MetaTool;
use crate::wire::message::Class;
use crate::wire::policy::Config;

pub(super) const TOOL: MetaTool = MetaTool {
    name: "delegate",
    description: "Have a sub-agent do a task on its own and tell its result. It sees nothing but the task: say all that \
                  it needs. Several calls in one turn work in parallel. tools limits it to some of yours.",
    parameters: r#"{"type":"object","properties":{"task":{"type":"string","minLength":1},"role":{"type":"string"},"tools":{"type":"array","items":{"type":"string"}}},"required":["task"]}"#,
    // A sub-agent that had begun goes on from its own log: the call may be run again at any time.
    effect: Class::Idempotent,
    own: false,
    offered: has_room_below,
    settle: None,
};

fn has_room_below(config: &Config) -> bool {
    config.agents.delegate && config.agents.depth > 0
}
