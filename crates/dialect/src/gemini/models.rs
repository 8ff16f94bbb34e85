//! The list of models in Gemini's shape, all on one page. Only names are known here.

use crate::json::Object;
use bytes::Bytes;

/// What can be done with every model.
const METHODS: [&str; 3] = ["generateContent", "streamGenerateContent", "countTokens"];

/// The models of these names.
pub fn list(names: &[&str]) -> Bytes {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    {
        let mut models = object.array("models");
        for name in names {
            fields(&mut models.object(), name);
        }
    }
    drop(object);
    out.into()
}

/// One model.
pub fn one(name: &str) -> Bytes {
    let mut out = Vec::new();
    fields(&mut Object::open(&mut out), name);
    out.into()
}

fn fields(object: &mut Object<'_>, name: &str) {
    object.string("name", &format!("models/{name}"));
    object.string("displayName", name);
    let mut methods = object.array("supportedGenerationMethods");
    METHODS.iter().for_each(|method| methods.string(method));
}
