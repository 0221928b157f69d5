//! The names of a tool's parameters.

use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value as Json;

/// The names of all properties that a JSON schema text speaks of, at any depth.
#[must_use]
pub fn parameters(schema: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(schema) = serde_json::from_str(schema) {
        collect(&schema, &mut names);
    }
    names
}

fn collect(schema: &Json, names: &mut Vec<String>) {
    match schema {
        Json::Object(members) => {
            if let Some(Json::Object(properties)) = members.get("properties") {
                names.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| collect(member, names));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn names_are_found_at_any_depth_and_nothing_in_what_is_no_schema() {
        let schema = r#"{"properties":{"who":{},"bags":{"items":{"properties":{"weight":{}}}}}}"#;
        assert_eq!(parameters(schema), ["bags", "who", "weight"]);
        assert!(parameters("no schema").is_empty());
    }
}
