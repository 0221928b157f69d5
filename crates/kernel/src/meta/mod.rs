//! Meta-tools: tools that the kernel itself offers. Those with a `settle` it answers by itself, the others the host does.

mod delegate;
mod knowledge;
mod memory;
mod recall;
mod skill;
mod update_plan;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::wire::message::{Class, ToolSpec};
use crate::wire::policy::{Config, Sources};
use crate::wire::task::Plan;

pub use skill::loaded;

/// All of them, by name.
pub const META_TOOLS: &[MetaTool] =
    &[delegate::TOOL, knowledge::TOOL, memory::TOOL, recall::TOOL, skill::TOOL, update_plan::TOOL];

/// A tool of the kernel's own.
#[derive(Clone, Copy, Debug)]
pub struct MetaTool {
    /// Its name, which no other tool may have.
    pub name: &'static str,
    /// What it is for, told to the model.
    pub description: &'static str,
    /// JSON schema text.
    pub parameters: &'static str,
    /// What a crash means.
    pub effect: Class,
    /// Whether it only reads what the run itself holds: such a tool needs a rule against it to be refused.
    pub own: bool,
    /// Whether the model is offered it.
    pub offered: fn(&Config) -> bool,
    /// For a tool that changes nothing but the task state: what it sets.
    pub settle: Option<Settle>,
}

/// The plan that arguments set, or what is wrong with them.
pub type Settle = fn(&str) -> Result<Plan, String>;

impl MetaTool {
    /// The tool as the model sees it.
    #[must_use]
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.to_string(),
            description: self.description.to_string(),
            parameters: self.parameters.to_string(),
            effect: self.effect,
            agent: false,
        }
    }
}

/// The meta-tool of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static MetaTool> {
    META_TOOLS.iter().find(|tool| tool.name == name)
}

/// Whether a name is that of a meta-tool that only reads what the run itself holds.
#[must_use]
pub fn is_own(name: &str) -> bool {
    named(name).is_some_and(|tool| tool.own)
}

/// Whether calling the tool of a name puts a sub-agent to work.
#[must_use]
pub fn is_agent(config: &Config, name: &str) -> bool {
    (config.agents.delegate && name == delegate::TOOL.name)
        || config.tools.iter().any(|tool| tool.agent && tool.name == name)
}

/// Whether a run offers the meta-tool of this name. `left`: something has left the prompt, so that it can be recalled in
/// any case.
#[must_use]
pub fn offers(config: &Config, name: &str, left: bool) -> bool {
    named(name).is_some_and(|tool| is_offered(tool, config, left))
}

fn is_offered(tool: &MetaTool, config: &Config, left: bool) -> bool {
    (tool.offered)(config) || (left && tool.name == recall::TOOL.name)
}

/// The tools that a run offers: its own and the kernel's, as `offers` says.
#[must_use]
pub fn tools(config: &Config, left: bool) -> Vec<ToolSpec> {
    let offered = |tool: &&MetaTool| is_offered(tool, config, left);
    config.tools.iter().cloned().chain(META_TOOLS.iter().filter(offered).map(MetaTool::spec)).collect()
}

/// What a crash means for the tool of a name; one that is not known counts as `once`.
#[must_use]
pub fn class(config: &Config, name: &str) -> Class {
    let own = config.tools.iter().find(|tool| tool.name == name).map(|tool| tool.effect);
    own.or_else(|| named(name).map(|tool| tool.effect)).unwrap_or_default()
}

/// Whether there is anything whose results a model could want to read again.
fn beside_others(config: &Config) -> bool {
    !config.tools.is_empty() || config.agents.delegate || config.sources != Sources::default()
}
