//! The legal order of a Responses stream, as the official clients rely on it: numbered events, `response.created` and
//! `response.in_progress` first, every item added once and done once with all of its parts between, one terminal event
//! whose output is what was done, nothing after. It is strict where the decoders are lenient, because it judges what the
//! gateway itself writes.

mod item;

use item::Item;
use serde_json::Value;
use turnkeep_wire::sse::Frame;

/// Watches one stream.
#[derive(Debug, Default)]
pub struct Order {
    state: State,
    /// The next `sequence_number`.
    next: u64,
    /// What must not change from one response object to the next.
    head: Option<[Value; 3]>,
    items: Vec<Item>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Fresh,
    Created,
    Begun,
    Ended,
    Failed,
}

/// Fields that every response object has, whatever they hold.
const FIELDS: &[&str] = &[
    "background",
    "completed_at",
    "error",
    "incomplete_details",
    "instructions",
    "max_output_tokens",
    "metadata",
    "previous_response_id",
    "reasoning",
    "service_tier",
    "store",
    "temperature",
    "tool_choice",
    "top_p",
    "truncation",
    "usage",
    "user",
];

impl Order {
    /// Judges the next frame. Comments may stand anywhere, and signs of life after the first event.
    pub fn frame(&mut self, frame: &Frame) -> Result<(), String> {
        let Some(data) = &frame.data else { return Ok(()) };
        if self.over() {
            return Err(format!("a frame after the end of the stream ({:?})", self.state));
        }
        let data: Value = serde_json::from_slice(data).map_err(|error| format!("data that is no JSON: {error}"))?;
        let name = frame.event.as_ref().ok_or("an event without its `event` line")?;
        let name = std::str::from_utf8(name).map_err(|_| "an event name that is not UTF-8")?;
        check(data["type"] == name, || format!("the event `{name}` carries data of type {}", data["type"]))?;
        match name {
            "keepalive" => check(self.state != State::Fresh, || "a sign of life before `response.created`".into()),
            "error" => self.error(&data),
            _ => {
                check(data["sequence_number"] == self.next, || {
                    format!("`{name}` has the number {} and not {}", data["sequence_number"], self.next)
                })?;
                self.next += 1;
                self.event(name, &data)
            }
        }
    }

    /// The stream is at its end: it must have ended by its terminal event or by an error.
    pub fn finish(&self) -> Result<(), String> {
        if self.over() { Ok(()) } else { Err(format!("the stream stops in the state {:?}", self.state)) }
    }

    fn over(&self) -> bool {
        match self.state {
            State::Ended | State::Failed => true,
            State::Fresh | State::Created | State::Begun => false,
        }
    }

    /// It has no number that is known to fit, as it may have been written by someone who did not write the rest.
    fn error(&mut self, data: &Value) -> Result<(), String> {
        check(data["code"].is_string(), || "an error without a code".into())?;
        check(data["message"].is_string(), || "an error without a message".into())?;
        check(data.get("param").is_some(), || "an error without a param".into())?;
        check(data["sequence_number"].is_u64(), || "an error without a number".into())?;
        self.state = State::Failed;
        Ok(())
    }

    fn event(&mut self, name: &str, data: &Value) -> Result<(), String> {
        let response = &data["response"];
        match (self.state, name) {
            (State::Fresh, "response.created") => {
                self.response(name, response, "in_progress")?;
                self.state = State::Created;
                Ok(())
            }
            (State::Created, "response.in_progress") => {
                self.response(name, response, "in_progress")?;
                self.state = State::Begun;
                Ok(())
            }
            (State::Begun, "response.completed") => self.end(name, response, "completed"),
            (State::Begun, "response.incomplete") => self.end(name, response, "incomplete"),
            (State::Created | State::Begun, "response.failed") => {
                self.response(name, response, "failed")?;
                check(response["error"]["code"].is_string(), || "a failed response without its error".into())?;
                check(response["error"]["message"].is_string(), || "a failed response without a message".into())?;
                self.state = State::Failed;
                Ok(())
            }
            (State::Begun, "response.output_item.added") => {
                check(data["output_index"] == self.items.len(), || {
                    format!("an item with the index {}, which is not the next", data["output_index"])
                })?;
                let item = Item::added(&data["item"])?;
                check(self.items.iter().all(|known| known.id != item.id), || format!("two items `{}`", item.id))?;
                self.items.push(item);
                Ok(())
            }
            (State::Begun, _) => self.inside(name, data),
            (state, name) => Err(format!("`{name}` in the state {state:?}")),
        }
    }

    /// An event of an item.
    fn inside(&mut self, name: &str, data: &Value) -> Result<(), String> {
        let index = data["output_index"].as_u64().ok_or_else(|| format!("`{name}` without `output_index`"))?;
        let item = usize::try_from(index).ok().and_then(|at| self.items.get_mut(at));
        let item = item.ok_or_else(|| format!("`{name}` of item {index}, which was not added"))?;
        if name == "response.output_item.done" {
            return item.done(&data["item"]);
        }
        check(data["item_id"] == item.id.as_str(), || {
            format!("`{name}` of item {index} has the id {} and not `{}`", data["item_id"], item.id)
        })?;
        item.event(name.strip_prefix("response.").unwrap_or(name), data)
    }

    fn end(&mut self, name: &str, response: &Value, status: &str) -> Result<(), String> {
        self.response(name, response, status)?;
        let output: Vec<&Value> = self.items.iter().filter_map(|item| item.whole.as_ref()).collect();
        check(output.len() == self.items.len(), || format!("`{name}` before every item is done"))?;
        let said: Vec<&Value> = response["output"].as_array().into_iter().flatten().collect();
        check(said == output, || format!("the output of `{name}` is not the items that were done"))?;
        let completed = status == "completed";
        check(completed == response["completed_at"].is_u64(), || "`completed_at` of what is not completed".into())?;
        let reason = response["incomplete_details"]["reason"].as_str();
        check(completed == reason.is_none(), || "`incomplete_details` without need, or none".into())?;
        check(reason.is_none_or(|reason| ["max_output_tokens", "content_filter"].contains(&reason)), || {
            format!("the answer is incomplete by {reason:?}")
        })?;
        let usage = &response["usage"];
        if !usage.is_null() {
            let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
            let (input, output) = (count("/input_tokens"), count("/output_tokens"));
            let total = input.zip(output).map(|(input, output)| input.saturating_add(output));
            check(total.is_some() && total == count("/total_tokens"), || {
                format!("a usage that does not add up: {usage}")
            })?;
            for path in [
                "/input_tokens_details/cached_tokens",
                "/input_tokens_details/cache_write_tokens",
                "/output_tokens_details/reasoning_tokens",
            ] {
                check(count(path).is_some(), || format!("a usage without `{path}`"))?;
            }
        }
        self.state = State::Ended;
        Ok(())
    }

    fn response(&mut self, name: &str, response: &Value, status: &str) -> Result<(), String> {
        check(response["status"] == status, || format!("`{name}` with the status {}", response["status"]))?;
        check(response["object"] == "response", || format!("`{name}` without a response"))?;
        let id = response["id"].as_str().unwrap_or_default();
        check(id.starts_with("resp_"), || format!("a response with the id {id:?}"))?;
        check(response["created_at"].is_u64(), || "a response without `created_at`".into())?;
        check(response["model"].is_string(), || "a response without its model".into())?;
        let head = ["id", "created_at", "model"].map(|key| response[key].clone());
        match &self.head {
            Some(known) if *known != head => return Err(format!("the response changed from {known:?} to {head:?}")),
            Some(_) => {}
            None => self.head = Some(head),
        }
        for field in FIELDS {
            check(response.get(field).is_some(), || format!("a response without `{field}`"))?;
        }
        check(response["parallel_tool_calls"].is_boolean(), || "a response without `parallel_tool_calls`".into())?;
        check(response["tools"].is_array(), || "a response without its tools".into())?;
        check(response["text"]["format"]["type"].is_string(), || "a response without `text.format`".into())?;
        check(response["output"].is_array(), || "a response without its output".into())?;
        check((status == "failed") != response["error"].is_null(), || "`error` without need, or none".into())?;
        if status == "in_progress" {
            check(response["output"] == Value::Array(Vec::new()), || "a response that starts with output".into())?;
            check(response["usage"].is_null(), || "a response that starts with its usage".into())?;
            check(response["completed_at"].is_null(), || "a response that starts completed".into())?;
            check(response["incomplete_details"].is_null(), || "a response that starts incomplete".into())?;
        }
        Ok(())
    }
}

fn check(good: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if good { Ok(()) } else { Err(what()) }
}
