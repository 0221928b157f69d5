//! `update_plan(steps, progress)`: the model's plan, kept in the task state.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::Deserialize;

use super::{MetaTool, beside_others};
use crate::wire::message::Class;
use crate::wire::task::{Plan, PlanStep, StepStatus};

pub(super) const TOOL: MetaTool = MetaTool {
    name: "update_plan",
    description: "Set the whole plan of a task of several steps, and in a line what was reached.",
    parameters: r#"{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"type":"string","enum":["todo","doing","done"]}},"required":["text","status"]}},"progress":{"type":"string"}},"required":["steps"]}"#,
    effect: Class::Idempotent,
    own: true,
    offered: beside_others,
    settle: Some(plan),
};

/// Bounds of what is kept, since the task state stands in every prompt. The model is not told: nobody reaches them.
const STEPS: usize = 40;
const STEP: usize = 300;
const PROGRESS: usize = 1_000;

#[derive(Deserialize)]
struct Arguments {
    steps: Vec<Step>,
    #[serde(default)]
    progress: String,
}

#[derive(Deserialize)]
struct Step {
    text: String,
    status: StepStatus,
}

fn plan(arguments: &str) -> Result<Plan, String> {
    let Arguments { steps, progress } = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    let steps = steps.into_iter().take(STEPS);
    let steps = steps.map(|step| PlanStep { text: one_line(&step.text, STEP), status: step.status }).collect();
    Ok(Plan { steps, progress: one_line(&progress, PROGRESS) })
}

/// The text on one line, at most `limit` characters.
fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.chars().take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::{StepStatus, plan};

    #[test]
    fn a_plan_is_kept_on_single_lines_within_its_bounds() {
        let long = "x".repeat(5_000);
        let steps =
            alloc::format!(r#"{{"text":" look\n at  it ","status":"done"}},{{"text":"{long}","status":"todo"}}"#);
        let read = plan(&alloc::format!(r#"{{"steps":[{steps}],"progress":"{long}"}}"#)).unwrap_or_default();
        let texts: alloc::vec::Vec<_> = read.steps.iter().map(|step| (step.text.len(), step.status)).collect();
        assert_eq!((texts, read.progress.len()), (alloc::vec![(10, StepStatus::Done), (300, StepStatus::Todo)], 1_000));
    }

    #[test]
    fn what_is_no_plan_is_an_error() {
        assert!(["{}", "[]", r#"{"steps":[{"text":"a","status":"later"}]}"#].iter().all(|text| plan(text).is_err()));
    }
}
