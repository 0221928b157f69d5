//! Bounds the work of a validation before it is done.
//!
//! References let a short schema ask for more steps than there are atoms (two references to the next definition, thirty
//! times). So schema and document are walked together first, counting; the walk stops at its limit.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Steps that any document may take; long ones get some for every node.
const STEPS: usize = 100_000;
const STEPS_A_NODE: usize = 256;
/// How deep schema and document may lead into each other. Documents nest to 128 at most.
const DEPTH: usize = 512;

/// Keywords whose value is a schema for the same instance.
const SAME_ONE: &[&str] = &["not", "if", "then", "else"];
/// Keywords whose value is a list of schemas for the same instance.
const SAME_MANY: &[&str] = &["allOf", "anyOf", "oneOf"];
/// Keywords whose value maps names to schemas for the same instance.
const SAME_NAMED: &[&str] = &["dependentSchemas", "dependencies"];
/// Keywords whose value is a schema for every child.
const EACH_CHILD: &[&str] =
    &["additionalProperties", "unevaluatedProperties", "items", "additionalItems", "contains", "unevaluatedItems"];
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Err if validating would take too many steps or would not end; it says which.
pub(super) fn within_bounds(schema: &Value, document: &Value) -> Result<(), String> {
    let mut names = BTreeMap::new();
    collect_names(schema, &mut names);
    let limit = STEPS.max(nodes(document).saturating_mul(STEPS_A_NODE));
    let mut walk = Walk { root: schema, names, left: limit };
    walk.visit(schema, document, 0)
}

/// Whether anything in the schema could be a reference.
pub(super) fn refers(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(refers),
        Value::Object(members) => {
            REFERENCES.iter().any(|keyword| members.contains_key(*keyword)) || members.values().any(refers)
        }
        _ => false,
    }
}

fn nodes(value: &Value) -> usize {
    let below: usize = match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        _ => 0,
    };
    below.saturating_add(1)
}

/// Every `$id`, `$anchor` and `$dynamicAnchor`, as a reference may write it.
fn collect_names<'a>(schema: &'a Value, names: &mut BTreeMap<String, &'a Value>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Object(members) => {
            for (keyword, sign) in [("$id", ""), ("id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")] {
                if let Some(Value::String(name)) = members.get(keyword) {
                    names.insert(format!("{sign}{name}"), schema);
                }
            }
            members.values().for_each(|member| collect_names(member, names));
        }
        _ => {}
    }
}

struct Walk<'a> {
    root: &'a Value,
    names: BTreeMap<String, &'a Value>,
    left: usize,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, schema: &'a Value, instance: &Value, depth: usize) -> Result<(), String> {
        let Value::Object(keywords) = schema else { return Ok(()) };
        if depth > DEPTH {
            return Err("schema: its references lead in a circle or too deep".to_owned());
        }
        self.left = self.left.checked_sub(1).ok_or("schema: it needs too many steps for this document")?;
        let deeper = depth.saturating_add(1);
        for target in self.same_instance(keywords)? {
            self.visit(target, instance, deeper)?;
        }
        match instance {
            Value::Object(members) => self.members(keywords, members, deeper),
            Value::Array(items) => self.items(keywords, items, deeper),
            _ => Ok(()),
        }
    }

    /// All schemas that `keywords` applies to the instance itself.
    fn same_instance(&self, keywords: &'a Map<String, Value>) -> Result<Vec<&'a Value>, String> {
        let mut found: Vec<&'a Value> = SAME_ONE.iter().filter_map(|keyword| keywords.get(*keyword)).collect();
        for keyword in SAME_MANY {
            found.extend(keywords.get(*keyword).and_then(Value::as_array).into_iter().flatten());
        }
        for keyword in SAME_NAMED {
            found.extend(keywords.get(*keyword).and_then(Value::as_object).into_iter().flat_map(Map::values));
        }
        for keyword in REFERENCES {
            if let Some(Value::String(reference)) = keywords.get(*keyword) {
                found.push(self.resolve(reference)?);
            }
        }
        Ok(found)
    }

    fn members(
        &mut self,
        keywords: &'a Map<String, Value>,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), String> {
        let named = keywords.get("properties").and_then(Value::as_object);
        let patterned = keywords.get("patternProperties").and_then(Value::as_object);
        for (name, member) in members {
            if let Some(schema) = named.and_then(|named| named.get(name)) {
                self.visit(schema, member, depth)?;
            }
            for schema in patterned.into_iter().flat_map(Map::values) {
                self.visit(schema, member, depth)?;
            }
            self.children(keywords, member, depth)?;
        }
        if let Some(schema) = keywords.get("propertyNames") {
            for name in members.keys() {
                self.visit(schema, &Value::String(name.clone()), depth)?;
            }
        }
        Ok(())
    }

    fn items(&mut self, keywords: &'a Map<String, Value>, items: &[Value], depth: usize) -> Result<(), String> {
        let by_position = ["prefixItems", "items"].map(|keyword| keywords.get(keyword).and_then(Value::as_array));
        for schemas in by_position.into_iter().flatten() {
            for (schema, item) in schemas.iter().zip(items) {
                self.visit(schema, item, depth)?;
            }
        }
        items.iter().try_for_each(|item| self.children(keywords, item, depth))
    }

    fn children(&mut self, keywords: &'a Map<String, Value>, child: &Value, depth: usize) -> Result<(), String> {
        for schema in EACH_CHILD.iter().filter_map(|keyword| keywords.get(*keyword)) {
            self.visit(schema, child, depth)?;
        }
        Ok(())
    }

    /// The schema that a reference within this document names.
    fn resolve(&self, reference: &str) -> Result<&'a Value, String> {
        if let Some(named) = self.names.get(reference) {
            return Ok(named);
        }
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if base.is_empty() { Some(self.root) } else { self.names.get(base).copied() };
        document
            .and_then(|document| document.pointer(&unescaped(fragment)))
            .ok_or_else(|| format!("schema: the reference {reference:?} is not followed here; use \"#/$defs/NAME\""))
    }
}

/// A fragment with its `%2F` read as `/`, and so on.
fn unescaped(fragment: &str) -> String {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part.bytes().skip(2));
            }
            None => {
                bytes.push(b'%');
                bytes.extend(part.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
