//! The smallest value that a JSON schema accepts, as far as a stand-in model needs it.
//!
//! Not a validator: keywords which only narrow a value (`pattern`, `format`, `not`) are not looked at.

use serde_json::{Map, Number, Value, json};

/// How deep a schema is followed; below, `null`.
const MAX_DEPTH: usize = 32;

/// A minimal instance: required properties only, the first of several choices, `"lab"`, 1, `true`.
pub(crate) fn instance(schema: &Value) -> Value {
    build(schema, schema, 0)
}

fn build(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    if let Some(fixed) = schema.get("const") {
        return fixed.clone();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(path) = schema["$ref"].as_str() {
        let target = path.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or(Value::Null, |target| build(target, root, depth + 1));
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = schema[choice].get(0) {
            return build(first, root, depth + 1);
        }
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut merged = object(schema, root, depth);
        for part in parts {
            match build(part, root, depth + 1) {
                Value::Object(map) => merged.extend(map),
                other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                    return other;
                }
            }
        }
        return Value::Object(merged);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].get(0).and_then(Value::as_str));
    // Google's own schemas write types in capitals.
    let kind = kind.map(str::to_ascii_lowercase);
    match kind.as_deref() {
        Some("string") => {
            let least = usize::try_from(schema["minLength"].as_u64().unwrap_or(0)).unwrap_or(0).min(1024);
            let mut text = "lab".to_owned();
            while text.len() < least {
                text.push('b');
            }
            if let Some(most) = schema["maxLength"].as_u64() {
                text.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            }
            Value::String(text)
        }
        Some("integer" | "number") => number(schema),
        Some("boolean") => Value::Bool(true),
        Some("null") => Value::Null,
        Some("array") => {
            let count = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap_or(0).min(64);
            let item = |_| build(schema.get("items").unwrap_or(&Value::Bool(true)), root, depth + 1);
            Value::Array((0..count).map(item).collect())
        }
        Some(_) | None => Value::Object(object(schema, root, depth)),
    }
}

fn number(schema: &Value) -> Value {
    let low = schema["minimum"].as_f64().or_else(|| schema["exclusiveMinimum"].as_f64().map(|low| low + 1.0));
    let high = schema["maximum"].as_f64();
    let one = 1.0_f64.max(low.unwrap_or(f64::MIN)).min(high.unwrap_or(f64::MAX));
    if one.fract() == 0.0 && one.abs() < 1e15 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return json!(one as i64);
    }
    Number::from_f64(one).map_or(json!(1), Value::Number)
}

fn object(schema: &Value, root: &Value, depth: usize) -> Map<String, Value> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let any = Value::Bool(true);
    let mut map = Map::new();
    for name in required.iter().filter_map(Value::as_str) {
        let property = schema["properties"].get(name).unwrap_or(&any);
        map.insert(name.to_owned(), build(property, root, depth + 1));
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_properties_get_the_smallest_values_their_schemas_accept() {
        let schema = json!({"type":"object","required":["a","b","c","d","e","f"],"properties":{
            "a":{"type":"string"},"b":{"type":"integer","minimum":7},"c":{"enum":["x","y"]},
            "d":{"type":"array","minItems":2,"items":{"type":"boolean"}},
            "e":{"$ref":"#/$defs/deep"},"f":{"anyOf":[{"type":"null"},{"type":"string"}]},"g":{"type":"string"}},
            "$defs":{"deep":{"type":["object","null"],"required":["n"],"properties":{"n":{"type":"number","maximum":0.5}}}}});
        let expected = json!({"a":"lab","b":7,"c":"x","d":[true,true],"e":{"n":0.5},"f":null});
        assert_eq!(instance(&schema), expected);
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}}});
        assert!(instance(&schema).is_object());
    }
}
