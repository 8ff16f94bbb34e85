//! Tool arguments where Messages wants a JSON object and all we have is a text that should be one.

use crate::json::{Kind, Object, Reader};

/// Writes arguments as an object field: the text itself when it is an object, `{}` when there is none, and otherwise
/// `{"_raw": "<the text>"}`, so that nothing the model said is lost and the document stays valid.
pub(super) fn write(object: &mut Object<'_>, key: &str, arguments: &str) {
    let text = arguments.trim();
    if text.is_empty() || text == "null" {
        object.raw(key, "{}");
    } else if is_object(text) {
        object.raw(key, text);
    } else {
        object.object(key).string("_raw", arguments);
    }
}

/// The text is one valid JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    let mut r = Reader::over(text);
    matches!(r.kind(), Ok(Kind::Object)) && r.skip().is_ok() && r.end().is_ok()
}
