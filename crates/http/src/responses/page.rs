//! Lists of items, page by page.

use super::items::{string_field, text_of};
use turnkeep_base::ClientError;
use turnkeep_dialect::json::Object;

/// Which part of a list is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    after: Option<String>,
    limit: usize,
    ascending: bool,
}

impl Page {
    /// From a query: `after`, `limit` (1 to 100, 20 by itself), `order` (`desc` by itself). `include` changes nothing:
    /// items are shown as they are.
    pub(super) fn of(query: Option<&str>) -> Result<Self, ClientError> {
        let mut page = Page { after: None, limit: 20, ascending: false };
        for (name, value) in pairs(query) {
            match name.as_str() {
                "after" => page.after = Some(value),
                "limit" => match value.parse() {
                    Ok(limit @ 1..=100) => page.limit = limit,
                    Ok(_) | Err(_) => {
                        let message = format!("limit: expected a number from 1 to 100, found {value:?}");
                        return Err(ClientError::invalid("limit", message));
                    }
                },
                "order" => match value.as_str() {
                    "asc" => page.ascending = true,
                    "desc" => page.ascending = false,
                    other => {
                        let message = format!("order: expected \"asc\" or \"desc\", found {other:?}");
                        return Err(ClientError::invalid("order", message));
                    }
                },
                _ => {}
            }
        }
        Ok(page)
    }

    /// The list object of this part of the items, which are in their order.
    pub(super) fn list(&self, items: &[String]) -> Result<String, ClientError> {
        let mut ordered: Vec<&String> = items.iter().collect();
        if !self.ascending {
            ordered.reverse();
        }
        if let Some(after) = &self.after {
            let at = ordered.iter().position(|item| string_field(item, "id").as_ref() == Some(after));
            let Some(at) = at else {
                let message = format!("after: there is no item {after:?} in this list");
                return Err(ClientError::invalid("after", message));
            };
            ordered.drain(..=at);
        }
        let more = ordered.len() > self.limit;
        ordered.truncate(self.limit);
        Ok(list(&ordered, more))
    }
}

/// A list object of items.
pub(super) fn list(items: &[&String], more: bool) -> String {
    let mut out = Vec::new();
    let mut object = Object::open(&mut out);
    object.string("object", "list");
    let mut data = object.array("data");
    items.iter().for_each(|item| data.raw(item));
    drop(data);
    let id = |item: Option<&&String>| item.and_then(|item| string_field(item, "id"));
    object.optional_string("first_id", id(items.first()).as_deref());
    object.optional_string("last_id", id(items.last()).as_deref());
    object.bool("has_more", more);
    drop(object);
    text_of(out)
}

/// The pairs of a query, decoded.
pub(super) fn pairs(query: Option<&str>) -> Vec<(String, String)> {
    let decoded = |text: &str| crate::dialects::percent_decoded(&text.replace('+', " ")).into_owned();
    let pairs = query.unwrap_or("").split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!(r#"{{"id":"i{number}"}}"#)).collect()
    }

    fn list(query: &str, count: usize) -> String {
        Page::of(Some(query)).unwrap().list(&items(count)).unwrap()
    }

    #[test]
    fn the_newest_come_first_unless_asked_otherwise() {
        let newest =
            r#"{"object":"list","data":[{"id":"i3"},{"id":"i2"}],"first_id":"i3","last_id":"i2","has_more":true}"#;
        assert_eq!(list("limit=2", 3), newest);
        let oldest =
            r#"{"object":"list","data":[{"id":"i1"},{"id":"i2"}],"first_id":"i1","last_id":"i2","has_more":true}"#;
        assert_eq!(list("limit=2&order=asc&include%5B%5D=x", 3), oldest);
    }

    #[test]
    fn a_page_goes_on_after_an_item_and_the_last_one_says_so() {
        let last = r#"{"object":"list","data":[{"id":"i1"}],"first_id":"i1","last_id":"i1","has_more":false}"#;
        assert_eq!(list("limit=2&after=i2", 3), last);
        let empty = r#"{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}"#;
        assert_eq!(list("after=i1", 3), empty);
        assert_eq!(list("", 0), empty);
        assert!(list("", 21).contains(r#""has_more":true"#) && !list("", 20).contains(r#""has_more":true"#));
    }

    #[test]
    fn what_is_no_page_is_refused_by_name() {
        for (query, param) in
            [("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"), ("order=up", "order")]
        {
            assert_eq!(Page::of(Some(query)).unwrap_err().param.as_deref(), Some(param), "{query}");
        }
        let unknown = Page::of(Some("after=zz")).unwrap().list(&items(2)).unwrap_err();
        assert_eq!(unknown.param.as_deref(), Some("after"));
    }
}
