//! The list of models in OpenAI's form.

use crate::json::Object;
use bytes::Bytes;

/// `GET /v1/models`. `created` is in Unix seconds.
pub fn list(models: &[&str], created: u64) -> Bytes {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    object.string("object", "list");
    let mut data = object.array("data");
    for model in models {
        write(data.object(), model, created);
    }
    drop(data);
    drop(object);
    out.into()
}

/// `GET /v1/models/{id}`. `created` is in Unix seconds.
pub fn one(model: &str, created: u64) -> Bytes {
    let mut out = Vec::new();
    write(Object::open(&mut out), model, created);
    out.into()
}

fn write(mut object: Object<'_>, model: &str, created: u64) {
    object.string("id", model);
    object.string("object", "model");
    object.number("created", created);
    object.string("owned_by", "turnkeep");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_every_model_in_order() {
        let one = r#"{"id":"a","object":"model","created":7,"owned_by":"turnkeep"}"#;
        assert_eq!(super::one("a", 7), one);
        let two = one.replace("\"a\"", "\"b\"");
        assert_eq!(list(&["a", "b"], 7), format!(r#"{{"object":"list","data":[{one},{two}]}}"#));
        assert_eq!(list(&[], 7), r#"{"object":"list","data":[]}"#);
    }
}
