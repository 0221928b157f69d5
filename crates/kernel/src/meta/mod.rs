//! Meta-tools: tools that the kernel itself offers. Those with a `settle` it answers by itself, the others the host does.

mod recall;
mod update_plan;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::wire::message::{Class, ToolSpec};
use crate::wire::policy::Config;
use crate::wire::task::Plan;

/// All of them, by name.
pub const META_TOOLS: &[MetaTool] = &[recall::TOOL, update_plan::TOOL];

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
        }
    }
}

/// The meta-tool of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static MetaTool> {
    META_TOOLS.iter().find(|tool| tool.name == name)
}

/// The tools that a run offers: its own and the kernel's. `left`: something has left the prompt, so that it can be
/// recalled in any case.
#[must_use]
pub fn tools(config: &Config, left: bool) -> Vec<ToolSpec> {
    let offered = |tool: &&MetaTool| (tool.offered)(config) || (left && tool.name == recall::TOOL.name);
    config.tools.iter().cloned().chain(META_TOOLS.iter().filter(offered).map(MetaTool::spec)).collect()
}

/// What a crash means for the tool of a name; one that is not known counts as `once`.
#[must_use]
pub fn class(config: &Config, name: &str) -> Class {
    let own = config.tools.iter().find(|tool| tool.name == name).map(|tool| tool.effect);
    own.or_else(|| named(name).map(|tool| tool.effect)).unwrap_or_default()
}

/// Whether there is anything whose results a model could want to read again.
fn beside_tools(config: &Config) -> bool {
    !config.tools.is_empty()
}
