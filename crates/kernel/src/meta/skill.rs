//! `skill(name, file)`: loads a skill, which is active from then on, or reads a file of its folder.

use alloc::string::String;
use serde::Deserialize;

use super::MetaTool;
use crate::wire::message::Class;
use crate::wire::policy::{Skill, Sources};

const NAME: &str = "skill";

pub(super) const TOOL: MetaTool = MetaTool {
    name: NAME,
    description: "Load a skill by its name before you begin a task of its kind; with file, read a file of its folder.",
    parameters: r#"{"type":"object","properties":{"name":{"type":"string"},"file":{"type":"string"}},"required":["name"]}"#,
    effect: Class::Read,
    own: true,
    offered: |config| !config.sources.skills.is_empty(),
    settle: None,
};

#[derive(Deserialize)]
struct Arguments {
    name: String,
    #[serde(default)]
    file: Option<String>,
}

/// The skill that a call loads, if it succeeds. One that reads a file of a skill loads none.
#[must_use]
pub fn loaded<'a>(sources: &'a Sources, tool: &str, arguments: &str) -> Option<&'a Skill> {
    if tool != NAME {
        return None;
    }
    let Arguments { name, file } = serde_json::from_str(arguments).ok()?;
    let asked = name.trim();
    let only_reads = file.is_some_and(|file| !file.trim().is_empty());
    if only_reads { None } else { sources.skills.iter().find(|skill| skill.name == asked) }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::{Skill, Sources, loaded};

    #[test]
    fn a_call_loads_the_skill_that_it_names_unless_it_reads_a_file() {
        let skill = Skill { name: "a b".into(), allowed_tools: vec![] };
        let sources = Sources { skills: vec![skill.clone()], ..Sources::default() };
        let loads = |arguments: &str| loaded(&sources, "skill", arguments);
        for arguments in [r#"{"name":"a b"}"#, r#"{"name":" a b ","file":null}"#, r#"{"name":"a b","file":" "}"#] {
            assert_eq!(loads(arguments), Some(&skill));
        }
        for arguments in [r#"{"name":"a"}"#, r#"{"name":"a b","file":"x.md"}"#, "{}", "[]", ""] {
            assert_eq!(loads(arguments), None);
        }
        assert_eq!(loaded(&sources, "memory", r#"{"name":"a b"}"#), None);
    }
}
