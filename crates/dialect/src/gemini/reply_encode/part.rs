//! One part of an answer as Gemini's clients read it.

use super::arguments;
use crate::json::Array;

#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'p> {
    Text {
        text: &'p str,
        thought: bool,
        proof: Option<&'p str>,
    },
    Call {
        id: &'p str,
        /// As the client names the tool.
        name: &'p str,
        /// As they came, which may be no JSON.
        arguments: &'p str,
        proof: Option<&'p str>,
    },
}

impl<'p> Part<'p> {
    pub(super) fn text(text: &'p str) -> Self {
        Part::Text { text, thought: false, proof: None }
    }

    pub(super) fn thought(text: &'p str, proof: Option<&'p str>) -> Self {
        Part::Text { text, thought: true, proof }
    }

    pub(super) fn write(&self, array: &mut Array<'_>) {
        let mut part = array.object();
        let proof = match self {
            Part::Text { text, thought, proof } => {
                part.string("text", text);
                if *thought {
                    part.bool("thought", true);
                }
                proof
            }
            Part::Call { id, name, arguments, proof } => {
                let mut call = part.object("functionCall");
                call.string("id", id);
                call.string("name", name);
                call.raw("args", &arguments::object(arguments));
                proof
            }
        };
        if let Some(proof) = proof {
            part.string("thoughtSignature", proof);
        }
    }
}
