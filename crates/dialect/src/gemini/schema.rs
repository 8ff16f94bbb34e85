//! Schemas as clients of Gemini write them: its own subset of OpenAPI (types in upper case, `nullable`, counts as
//! strings), or JSON Schema with types in upper case, as some clients send it. Other providers want JSON Schema.
//!
//! Only schema positions are touched: a property may be called `type` or `nullable`, and the data in `enum`, `const`,
//! `default` and examples is data.

use crate::json::{Invalid, Kind, Object, Reader};

/// The kind of schema that a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `parameters`, `responseSchema`: a message of the protocol, whose fields have two spellings.
    OpenApi,
    /// `parametersJsonSchema`, `responseJsonSchema`.
    Json,
}

/// The schema as JSON Schema; `None` where it is one as it stands.
pub(super) fn to_json_schema(raw: &str, form: Form) -> Option<String> {
    let (mut out, mut changed) = (Vec::with_capacity(raw.len() + 32), false);
    schema(&mut Reader::over(raw), form, &mut out, &mut changed).ok()?;
    if changed { String::from_utf8(out).ok() } else { None }
}

/// Keys of OpenAPI's that say nothing in JSON Schema, and that strict targets refuse.
const NO_MEANING: [&str; 2] = ["propertyOrdering", "example"];
/// Numbers that the protocol may write as strings.
const COUNTS: [&str; 6] = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// The fields of one schema, as they stand.
#[derive(Default)]
struct Fields<'a> {
    list: Vec<(String, Reader<'a>)>,
    nullable: bool,
    typed: bool,
}

fn schema(r: &mut Reader<'_>, form: Form, out: &mut Vec<u8>, changed: &mut bool) -> Result<(), Invalid> {
    // `true` and `false` are schemas; anything else is left for the target to judge.
    if r.kind()? != Kind::Object {
        out.extend_from_slice(r.raw()?.as_bytes());
        return Ok(());
    }
    let mut fields = Fields::default();
    r.object::<Invalid>(|r, key| {
        let key = match form {
            // `$defs`, `$ref` and the like have one spelling.
            Form::OpenApi if !key.starts_with('$') => super::request::camel(key),
            Form::OpenApi | Form::Json => key.into(),
        };
        match (&*key, r.kind()?) {
            ("nullable", Kind::Bool) => {
                fields.nullable |= r.bool()?;
                *changed = true;
                return Ok(());
            }
            ("format", Kind::String) if r.clone().string()? == "enum" => *changed = true,
            (key, _) if form == Form::OpenApi && NO_MEANING.contains(&key) => *changed = true,
            (key, kind) => {
                fields.typed |= key == "type" && kind == Kind::String;
                fields.list.push((key.to_owned(), r.clone()));
            }
        }
        r.skip().map(drop)
    })?;
    write(fields, form, out, changed)
}

fn write(fields: Fields<'_>, form: Form, out: &mut Vec<u8>, changed: &mut bool) -> Result<(), Invalid> {
    let nullable = fields.nullable;
    let mut object = Object::open(out);
    for (key, mut value) in fields.list {
        let kind = value.kind()?;
        let mut text = Vec::new();
        match (&*key, kind) {
            ("type", Kind::String | Kind::Array) => {
                if !types(&mut value, nullable, &mut text, changed)? {
                    continue;
                }
            }
            (
                "properties" | "patternProperties" | "$defs" | "defs" | "definitions" | "dependentSchemas",
                Kind::Object,
            ) => {
                let mut inside = Object::open(&mut text);
                value.object::<Invalid>(|r, name| {
                    let mut one = Vec::new();
                    schema(r, form, &mut one, changed)?;
                    inside.raw(name, &String::from_utf8_lossy(&one));
                    Ok(())
                })?;
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Kind::Array) => {
                text.push(b'[');
                value.array::<Invalid>(|r, index| {
                    if index > 0 {
                        text.push(b',');
                    }
                    schema(r, form, &mut text, changed)
                })?;
                // One of several, or nothing.
                if nullable && !fields.typed && matches!(&*key, "anyOf" | "oneOf") {
                    text.extend_from_slice(if text.len() > 1 { br#",{"type":"null"}"# } else { br#"{"type":"null"}"# });
                }
                text.push(b']');
            }
            (
                "items"
                | "not"
                | "additionalProperties"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                Kind::Object,
            ) => schema(&mut value, form, &mut text, changed)?,
            ("enum", Kind::Array) if nullable => {
                let raw = value.raw()?;
                text.extend_from_slice(raw.as_bytes());
                let (found, any) = has_null(raw)?;
                if !found {
                    text.pop();
                    text.extend_from_slice(if any { b",null]" } else { b"null]" });
                }
            }
            (count, Kind::String) if form == Form::OpenApi && COUNTS.contains(&count) => {
                let digits = value.string()?;
                match digits.parse::<u64>() {
                    Ok(number) => text.extend_from_slice(number.to_string().as_bytes()),
                    Err(_) => return Err(value.fail("expected a whole number")),
                }
                *changed = true;
            }
            (_, _) => text.extend_from_slice(value.raw()?.as_bytes()),
        }
        object.raw(&key, &String::from_utf8_lossy(&text));
    }
    Ok(())
}

/// Whether a list has a `null`, and whether it has anything.
fn has_null(list: &str) -> Result<(bool, bool), Invalid> {
    let (mut found, mut any) = (false, false);
    Reader::over(list).array::<Invalid>(|r, _| {
        any = true;
        found |= r.raw()? == "null";
        Ok(())
    })?;
    Ok((found, any))
}

/// Writes the type, or the types, in lower case; false for one that is not given.
fn types(r: &mut Reader<'_>, nullable: bool, out: &mut Vec<u8>, changed: &mut bool) -> Result<bool, Invalid> {
    let mut names = Vec::new();
    let single = r.kind()? == Kind::String;
    let mut each = |r: &mut Reader<'_>| {
        if r.kind()? != Kind::String {
            names.push(r.raw()?.to_owned());
            return Ok(());
        }
        let name = r.string()?;
        if name == "TYPE_UNSPECIFIED" {
            *changed = true;
            return Ok(());
        }
        let name = match &*name {
            "STRING" | "NUMBER" | "INTEGER" | "BOOLEAN" | "ARRAY" | "OBJECT" | "NULL" => {
                *changed = true;
                name.to_ascii_lowercase()
            }
            other => other.to_owned(),
        };
        let mut text = Vec::new();
        crate::json::write_string(&mut text, &name);
        names.push(String::from_utf8_lossy(&text).into_owned());
        Ok::<(), Invalid>(())
    };
    if single {
        each(r)?
    } else {
        r.array(|r, _| each(r))?
    }
    if nullable && !names.iter().any(|name| name == "\"null\"") && !names.is_empty() {
        names.push("\"null\"".into());
    }
    match names.as_slice() {
        [] if single => return Ok(false),
        [one] if single => out.extend_from_slice(one.as_bytes()),
        several => out.extend_from_slice(format!("[{}]", several.join(",")).as_bytes()),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn made(schema: &Value, form: Form) -> Value {
        let raw = schema.to_string();
        to_json_schema(&raw, form).map_or_else(|| schema.clone(), |text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn types_come_in_lower_case_and_nullable_becomes_a_type() {
        let given = json!({"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true,"description":"STRING"},
            "b":{"type":"ARRAY","items":{"type":"INTEGER","format":"int32"},"minItems":"2"},
            "c":{"type":"STRING","format":"enum","enum":["X","Y"],"nullable":true},
            "d":{"any_of":[{"type":"NUMBER"},{"type":"BOOLEAN"}],"nullable":true},
            "e":{"type":"TYPE_UNSPECIFIED"},"f":{"type":["STRING","NULL"]},"g":{"type":"NULL"}},
            "required":["a"],"propertyOrdering":["a","b"],"example":{"a":"x"}});
        let expected = json!({"type":"object","properties":{"a":{"type":["string","null"],"description":"STRING"},
            "b":{"type":"array","items":{"type":"integer","format":"int32"},"minItems":2},
            "c":{"type":["string","null"],"enum":["X","Y",null]},
            "d":{"anyOf":[{"type":"number"},{"type":"boolean"},{"type":"null"}]},
            "e":{},"f":{"type":["string","null"]},"g":{"type":"null"}},
            "required":["a"]});
        assert_eq!(made(&given, Form::OpenApi), expected);
    }

    #[test]
    fn names_of_properties_and_data_are_never_touched() {
        let properties = json!({"type":{"type":"STRING"},"nullable":{"type":"STRING"},"format":{"type":"STRING"},
            "properties":{"type":"STRING"},"enum":{"type":"STRING"},"example":{"type":"STRING"},
            "snake_case":{"type":"STRING"},"propertyOrdering":{"type":"STRING"},"items":{"type":"STRING"}});
        let lower: Value = serde_json::from_str(&properties.to_string().replace("STRING", "string")).unwrap();
        for (key, data) in [
            ("enum", json!(["STRING", {"type":"STRING","nullable":true}])),
            ("const", json!({"type":"OBJECT","any_of":[]})),
            ("default", json!({"type":"OBJECT","properties":{"type":"ARRAY"}})),
            ("examples", json!([{"nullable":true}])),
            ("title", json!("OBJECT")),
            ("x-own", json!({"type":"STRING"})),
        ] {
            let mut given = json!({"type":"OBJECT","properties":properties});
            given[key] = data.clone();
            let mut expected = json!({"type":"object","properties":lower});
            expected[key] = data;
            for form in [Form::OpenApi, Form::Json] {
                assert_eq!(made(&given, form), expected, "{key}");
            }
        }
    }

    #[test]
    fn a_json_schema_stays_where_it_stands() {
        for schema in [
            r##"{"type":"object", "properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":["string","null"]}},"additionalProperties":false}"##,
            r#"{"if":{"type":"string"},"then":true,"not":{},"items":[{"const":"STRING"}]}"#,
            "{}",
            "true",
            r#"{"type":"enum_of_ours","min_items":"3"}"#,
        ] {
            assert_eq!(to_json_schema(schema, Form::Json), None, "{schema}");
        }
    }

    #[test]
    fn a_schema_200_deep_is_neither_changed_nor_a_panic() {
        let deep = format!("{}{}{}", r#"{"type":"OBJECT","properties":{"a":"#.repeat(200), "{}", "}}".repeat(200));
        assert_eq!(to_json_schema(&deep, Form::OpenApi), None);
    }
}
