//! What an answer repeats of its request, put right where the upstream was asked with another body than the client's: a
//! request that was filled up from stored state names none of it, and its answer says so. All else stays as it came.

use super::reply_encode::echo::Echo;
use crate::json::{Invalid, Kind, Object, Reader};
use crate::reply::ReplyOptions;
use bytes::Bytes;
use turnkeep_wire::sse::{self, Frame};

/// The fields of one client's request that say where its answer is kept, and the answer's own id.
#[derive(Debug)]
pub(super) struct Restate {
    /// The gateway's own id.
    id: Option<String>,
    echo: Echo,
}

impl Restate {
    /// `None` where the answer may stay as it is.
    pub(super) fn of(options: &ReplyOptions) -> Option<Self> {
        let asked = &options.asked;
        (asked.restated || asked.own_id)
            .then(|| Restate { id: asked.own_id.then(|| format!("resp_{}", options.id)), echo: Echo::of(&asked.body) })
    }

    /// An event whose data hold a response object.
    pub(super) fn frame(&self, frame: Frame) -> Bytes {
        let data = frame.data.as_deref().and_then(|data| std::str::from_utf8(data).ok());
        let Some(data) = data.and_then(|data| self.event(data).ok().flatten()) else { return frame.raw };
        let name = frame.event.as_deref().and_then(|name| std::str::from_utf8(name).ok());
        // Between its values JSON may break lines, which the data of an event must not.
        let data: Vec<u8> =
            data.into_iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
        let mut out = Vec::with_capacity(data.len() + 64);
        sse::write(&mut out, name, &data);
        out.into()
    }

    /// A whole answer.
    pub(super) fn body(&self, body: Bytes) -> Bytes {
        let text = std::str::from_utf8(&body).ok();
        match text.and_then(|text| self.response(text).ok()) {
            Some(restated) => restated.into(),
            None => body,
        }
    }

    /// `None` for one without a response.
    fn event(&self, data: &str) -> Result<Option<Vec<u8>>, Invalid> {
        let mut out = Vec::with_capacity(data.len() + 64);
        let mut event = Object::open(&mut out);
        let mut found = false;
        let mut r = Reader::over(data);
        r.object::<Invalid>(|r, key| {
            let key = key.to_owned();
            let is_response = key == "response" && r.kind()? == Kind::Object;
            let value = r.raw()?;
            if is_response {
                found = true;
                let response = self.response(value)?;
                event.raw(&key, &String::from_utf8_lossy(&response));
            } else {
                event.raw(&key, value);
            }
            Ok(())
        })?;
        drop(event);
        Ok(found.then_some(out))
    }

    fn response(&self, response: &str) -> Result<Vec<u8>, Invalid> {
        let mut out = Vec::with_capacity(response.len() + 64);
        let mut object = Object::open(&mut out);
        if let Some(id) = &self.id {
            object.string("id", id);
        }
        let mut r = Reader::over(response);
        r.object::<Invalid>(|r, key| {
            let key = key.to_owned();
            let value = r.raw()?;
            let ours = Echo::is_state(&key) || (key == "id" && self.id.is_some());
            if !ours {
                object.raw(&key, value);
            }
            Ok(())
        })?;
        self.echo.write_state(&mut object);
        drop(object);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Asked;
    use serde_json::{Value, json};
    use turnkeep_base::Dialect;

    fn options(own_id: bool) -> ReplyOptions {
        let body = r#"{"model":"m","conversation":"conv_1","background":true,"input":"x","temperature":0.5}"#;
        ReplyOptions {
            client: Dialect::Responses,
            upstream: Dialect::Responses,
            model: "m".into(),
            usage_wanted: false,
            choices: 1,
            id: "own".into(),
            created: 7,
            max_event: 1 << 20,
            asked: Asked { body: body.into(), restated: true, own_id, ..Asked::default() },
        }
    }

    const ANSWER: &str = r#"{"id":"resp_up","background":false,"previous_response_id":null,"temperature":0.1,"output":[{"id":"resp_up","type":"web_search_call"}],"store":false}"#;

    fn restated(own_id: bool) -> Value {
        let body = Restate::of(&options(own_id)).unwrap().body(Bytes::from_static(ANSWER.as_bytes()));
        serde_json::from_slice(&body).unwrap()
    }

    #[test]
    fn state_is_the_clients_and_all_else_the_upstreams() {
        let output = json!([{"id": "resp_up", "type": "web_search_call"}]);
        let expected = json!({
            "id": "resp_up", "background": true, "previous_response_id": null, "conversation": {"id": "conv_1"},
            "temperature": 0.1, "output": output, "store": true,
        });
        assert_eq!(restated(false), expected);
        let mut own = expected;
        own["id"] = "resp_own".into();
        assert_eq!(restated(true), own);
    }

    #[test]
    fn an_event_with_a_response_is_written_anew_and_any_other_stays() {
        let restate = Restate::of(&options(true)).unwrap();
        let told = |text: &str| {
            let mut reader = sse::Reader::new(1 << 20);
            reader.push(Bytes::copy_from_slice(text.as_bytes()));
            let bytes = restate.frame(reader.next_frame().unwrap().unwrap());
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\", \"delta\":\"response\"}\n\n";
        assert_eq!(told(delta), delta);
        let created = told(&format!(
            "event: response.created\ndata: {{\"type\":\"response.created\",\"response\":{ANSWER}}}\n\n"
        ));
        let data = created.strip_prefix("event: response.created\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&data["type"], &data["response"]), (&json!("response.created"), &restated(true)));
    }

    #[test]
    fn an_answer_to_what_the_client_sent_stays_as_it_is() {
        let asked = Asked { body: r#"{"store":false}"#.into(), ..Asked::default() };
        assert!(Restate::of(&ReplyOptions { asked, ..options(false) }).is_none());
    }
}
