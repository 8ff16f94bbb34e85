//! Google's JSON takes each field in two spellings. The lab reads bodies in one: `camelCase`.

use serde_json::{Map, Value};

/// Fields whose values are the caller's own data, in which no name is changed.
const OPAQUE: [&str; 9] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "labels",
    "partMetadata",
    "properties",
];

/// The body with every field in `camelCase`.
pub(crate) fn camel(value: &Value) -> Value {
    if let Some(list) = value.as_array() {
        return list.iter().map(camel).collect();
    }
    let Some(map) = value.as_object() else { return value.clone() };
    let field = |(name, value): (&String, &Value)| {
        let name = one(name);
        let value = if OPAQUE.contains(&name.as_str()) { value.clone() } else { camel(value) };
        (name, value)
    };
    Value::Object(map.iter().map(field).collect::<Map<_, _>>())
}

fn one(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut up = false;
    for letter in name.chars() {
        match letter {
            '_' if !out.is_empty() => up = true,
            _ if up => {
                out.extend(letter.to_uppercase());
                up = false;
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::camel;
    use serde_json::json;

    #[test]
    fn fields_are_respelt_at_every_level_and_data_is_not() {
        let given = json!({"generation_config": {"max_output_tokens": 3}, "contents": [{"parts": [
            {"function_call": {"name": "a_b", "args": {"some_key": {"x_y": 1}}}}]}]});
        let want = json!({"generationConfig": {"maxOutputTokens": 3}, "contents": [{"parts": [
            {"functionCall": {"name": "a_b", "args": {"some_key": {"x_y": 1}}}}]}]});
        assert_eq!(camel(&given), want);
    }
}
