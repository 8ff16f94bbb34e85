//! A Chat request as a client sends it: checked without being built ([`read`]), made to ask for usage ([`usage_edit`]),
//! or read into a canonical turn ([`decode`]).

mod decode;
mod decode_calls;
mod decode_content;
mod decode_message;
mod decode_thinking;
mod decode_tools;
mod read;

pub(crate) use crate::chat::fields::{missing, optional_bool, optional_u64};
use crate::request::{ClientRequest, Edit};
pub use decode::decode;
pub(crate) use decode::{hint, says_nothing};
pub(crate) use decode_content::{begins, breakpoint, data_url};
pub(crate) use decode_tools::named;
pub use read::read;
pub(crate) use read::{a_string, an_object, below};

/// The edits that make a streamed answer carry usage. None when it carries it already, or is not streamed.
pub fn usage_edit(request: &ClientRequest) -> Vec<Edit> {
    if !request.stream || request.usage_wanted {
        return Vec::new();
    }
    if let Some(span) = &request.spans.include_usage {
        return vec![Edit { span: span.clone(), with: b"true".to_vec() }];
    }
    let Some(span) = &request.spans.stream_options else {
        // Directly behind the model's value: the one place that is certainly inside the top-level object.
        let at = request.spans.model.end;
        return vec![Edit { span: at..at, with: br#","stream_options":{"include_usage":true}"#.to_vec() }];
    };
    let value = &request.body[span.clone()];
    if value.first() != Some(&b'{') {
        return vec![Edit { span: span.clone(), with: br#"{"include_usage":true}"#.to_vec() }];
    }
    let inside = value[1..].iter().find(|byte| !byte.is_ascii_whitespace());
    let with = if inside == Some(&b'}') { &b"\"include_usage\":true"[..] } else { b"\"include_usage\":true," };
    vec![Edit { span: span.start + 1..span.start + 1, with: with.to_vec() }]
}
