"""The four dialects as an upstream writes them and as a caller reads them, as far as the scorecard needs them.

Written from the vendors' published interfaces and apart from the product, so that the product is judged by something that does
not share its mistakes. An `Answer` is one upstream attempt: every word of it says which attempt wrote it and where it stands in it,
so that a reader can tell an answer that is whole from one that has a hole, comes twice, or is sewn together from two.
"""

import json
import re

MODEL = "score"
PROMPT_TOKENS = 11
WORD = re.compile(r"w(\d+)\.(\d+)")


def word(attempt, number, padding=0):
    """The `number`-th word of an attempt, from 1; `padding` bytes are added to make an answer large."""
    return f"w{attempt}.{number}{'-' * padding} "


def dumps(value):
    return json.dumps(value, separators=(",", ":"))


def event(data, name=None):
    """One server-sent event."""
    text = data if isinstance(data, str) else dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


# What the providers say, by the kind of refusal: (message, OpenAI's type and code, Anthropic's type, Google's status).
WORDS = {
    "rate": ("Rate limit reached for requests. Please try again later.", "requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    "internal": ("The server had an error while processing your request.", "server_error", None, "api_error", "INTERNAL"),
    "unavailable": ("Service temporarily unavailable.", "server_error", None, "api_error", "UNAVAILABLE"),
    "parameter": ("Unsupported parameter: 'temperature' is not supported with this model.", "invalid_request_error", "unsupported_parameter", "invalid_request_error", "INVALID_ARGUMENT"),
    "policy": ("Your request was rejected as a result of our safety system.", "invalid_request_error", "content_policy_violation", "invalid_request_error", "INVALID_ARGUMENT"),
    "context": ("", "invalid_request_error", "context_length_exceeded", "invalid_request_error", "INVALID_ARGUMENT"),
}
TOO_LONG = {
    "chat": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.",
    "responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "messages": "prompt is too long: 208310 tokens > 200000 maximum",
    "gemini": "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
}


def error(dialect, status, kind):
    """The body of an error in the provider's own form."""
    message, openai_type, code, anthropic_type, google = WORDS[kind]
    if kind == "context":
        message = TOO_LONG[dialect]
    if kind == "policy" and dialect == "messages":
        message = "Output blocked by content filtering policy"
    if dialect == "messages":
        return {"type": "error", "error": {"type": anthropic_type, "message": message}, "request_id": "req_score"}
    if dialect == "gemini":
        return {"error": {"code": status, "message": message, "status": google}}
    return {"error": {"message": message, "type": openai_type, "param": None, "code": code}}


class Answer:
    """What one attempt writes: `head` before the first word, `delta` for each, `end` with the terminal; or `plain`."""

    def __init__(self, dialect, attempt):
        self.dialect, self.attempt, self.text, self.words, self.number = dialect, attempt, "", 0, 0

    # The finish of a dialect, by ours: "stop" or "filter".
    FINISH = {
        "chat": {"stop": "stop", "filter": "content_filter"},
        "messages": {"stop": "end_turn", "filter": "refusal"},
        "gemini": {"stop": "STOP", "filter": "SAFETY"},
        "responses": {"stop": "completed", "filter": "incomplete"},
    }

    def usage(self):
        if self.dialect == "chat":
            return {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": self.words, "total_tokens": PROMPT_TOKENS + self.words}
        if self.dialect == "messages":
            return {"input_tokens": PROMPT_TOKENS, "output_tokens": self.words}
        if self.dialect == "gemini":
            return {"promptTokenCount": PROMPT_TOKENS, "candidatesTokenCount": self.words, "totalTokenCount": PROMPT_TOKENS + self.words}
        return {
            "input_tokens": PROMPT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": self.words,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": PROMPT_TOKENS + self.words,
        }

    def chunk(self, delta, finish=None):
        return {
            "id": f"chatcmpl-{self.attempt}",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": MODEL,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }

    def response(self, status, **more):
        return {
            "id": f"resp_{self.attempt}",
            "object": "response",
            "created_at": 1700000000,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": MODEL,
            "output": [],
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            **more,
        }

    def item(self, status):
        part = {"type": "output_text", "text": self.text, "annotations": []}
        content = [part] if status == "completed" else []
        return {"id": f"msg_{self.attempt}", "type": "message", "status": status, "role": "assistant", "content": content}

    def numbered(self, kind, **fields):
        out = event({"type": kind, "sequence_number": self.number, **fields}, kind)
        self.number += 1
        return out

    def head(self):
        if self.dialect == "chat":
            return event(self.chunk({"role": "assistant", "content": ""}))
        if self.dialect == "messages":
            message = {
                "id": f"msg_{self.attempt}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": 1},
            }
            start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            return event({"type": "message_start", "message": message}, "message_start") + event(start, "content_block_start")
        if self.dialect == "gemini":
            return b""
        place = {"output_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        return (
            self.numbered("response.created", response=self.response("in_progress"))
            + self.numbered("response.in_progress", response=self.response("in_progress"))
            + self.numbered("response.output_item.added", item=self.item("in_progress"), **place)
            + self.numbered("response.content_part.added", item_id=f"msg_{self.attempt}", content_index=0, part=part, **place)
        )

    def delta(self, padding=0):
        self.words += 1
        text = word(self.attempt, self.words, padding)
        self.text += text
        if self.dialect == "chat":
            return event(self.chunk({"content": text}))
        if self.dialect == "messages":
            fields = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            return event(fields, "content_block_delta")
        if self.dialect == "gemini":
            return event(self.candidates(text))
        place = {"item_id": f"msg_{self.attempt}", "output_index": 0, "content_index": 0}
        return self.numbered("response.output_text.delta", delta=text, logprobs=[], **place)

    def candidates(self, text, finish=None):
        candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        more = {"usageMetadata": self.usage()} if finish else {}
        return {"candidates": [candidate], **more, "modelVersion": MODEL, "responseId": f"r{self.attempt}"}

    def end(self, finish="stop"):
        """The rest of a stream that ends as it should."""
        said = self.FINISH[self.dialect][finish]
        if self.dialect == "chat":
            last = {**self.chunk({}), "choices": [], "usage": self.usage()}
            return event(self.chunk({}, said)) + event(last) + event("[DONE]")
        if self.dialect == "messages":
            stop = {"type": "message_delta", "delta": {"stop_reason": said, "stop_sequence": None}, "usage": self.usage()}
            return (
                event({"type": "content_block_stop", "index": 0}, "content_block_stop")
                + event(stop, "message_delta")
                + event({"type": "message_stop"}, "message_stop")
            )
        if self.dialect == "gemini":
            return event(self.candidates("", said))
        place = {"item_id": f"msg_{self.attempt}", "output_index": 0, "content_index": 0}
        part = {"type": "output_text", "text": self.text, "annotations": []}
        return (
            self.numbered("response.output_text.done", text=self.text, logprobs=[], **place)
            + self.numbered("response.content_part.done", part=part, **place)
            + self.numbered("response.output_item.done", output_index=0, item=self.item("completed"))
            + self.numbered(f"response.{said}", response=self.whole_response(finish))
        )

    def whole_response(self, finish):
        more = {"incomplete_details": {"reason": "content_filter"}} if finish == "filter" else {}
        return self.response(self.FINISH["responses"][finish], output=[self.item("completed")], usage=self.usage(), **more)

    def plain(self, words, finish="stop"):
        """The same answer without a stream."""
        for _ in range(words):
            self.words += 1
            self.text += word(self.attempt, self.words)
        said = self.FINISH[self.dialect][finish]
        if self.dialect == "chat":
            message = {"role": "assistant", "content": self.text, "refusal": None}
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": said}
            return {
                "id": f"chatcmpl-{self.attempt}",
                "object": "chat.completion",
                "created": 1700000000,
                "model": MODEL,
                "choices": [choice],
                "usage": self.usage(),
            }
        if self.dialect == "messages":
            return {
                "id": f"msg_{self.attempt}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [{"type": "text", "text": self.text}],
                "stop_reason": said,
                "stop_sequence": None,
                "usage": self.usage(),
            }
        if self.dialect == "gemini":
            return self.candidates(self.text, said)
        return self.whole_response(finish)


def target(dialect, stream, model=MODEL):
    """The path a caller asks."""
    if dialect == "gemini":
        return f"/v1beta/models/{model}:" + ("streamGenerateContent?alt=sse" if stream else "generateContent")
    return {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}[dialect]


def request(dialect, text, stream, model=MODEL):
    """The body a caller sends."""
    if dialect == "chat":
        more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        return {"model": model, "messages": [{"role": "user", "content": text}], **more}
    if dialect == "messages":
        return {"model": model, "max_tokens": 1024, "messages": [{"role": "user", "content": text}], **({"stream": True} if stream else {})}
    if dialect == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    return {"model": model, "input": text, "store": False, **({"stream": True} if stream else {})}


def credentials(dialect, key):
    if dialect == "messages":
        return [("x-api-key", key), ("anthropic-version", "2023-06-01")]
    if dialect == "gemini":
        return [("x-goog-api-key", key)]
    return [("authorization", f"Bearer {key}")]


def asked_for_stream(target_path, body):
    return ":streamGenerateContent" in target_path or body.get("stream") is True


FILTERED = {"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT"}
STOPPED = {"stop", "end_turn", "STOP", "completed"}


def finish_word(raw):
    if raw is None:
        return None
    return "stop" if raw in STOPPED else "filter" if raw in FILTERED else str(raw)


def read_event(dialect, data, name, found):
    """Takes one event's data into `found`."""
    if data == "[DONE]":
        found["done"] = True
        return
    try:
        value = json.loads(data)
    except ValueError:
        found["not_json"] = found.get("not_json", 0) + 1
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("error"), (dict, str)) or value.get("type") in ("error", "response.failed") or name == "error":
        found["error"] = dumps(value)[:400]
        return
    if dialect == "chat":
        for choice in value.get("choices") or []:
            found["text"].append((choice.get("delta") or choice.get("message") or {}).get("content") or "")
            if choice.get("finish_reason"):
                found["finish"] = finish_word(choice["finish_reason"])
        usage = value.get("usage")
        if usage:
            found["usage"] = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    elif dialect == "messages":
        kind = value.get("type")
        if kind == "content_block_delta":
            found["text"].append(value["delta"].get("text", ""))
        elif kind == "message_delta":
            found["finish"] = finish_word((value.get("delta") or {}).get("stop_reason"))
            usage = value.get("usage") or {}
            found["usage"] = [usage.get("input_tokens", PROMPT_TOKENS), usage.get("output_tokens")]
        elif kind == "message_stop":
            found["done"] = True
        elif kind == "message":
            found["text"] += [part.get("text", "") for part in value.get("content") or []]
            found["finish"] = finish_word(value.get("stop_reason"))
            usage = value.get("usage") or {}
            found["usage"] = [usage.get("input_tokens"), usage.get("output_tokens")]
    elif dialect == "gemini":
        for candidate in value.get("candidates") or []:
            found["text"] += [part.get("text", "") for part in (candidate.get("content") or {}).get("parts") or []]
            if candidate.get("finishReason"):
                found["finish"], found["done"] = finish_word(candidate["finishReason"]), True
        if (value.get("promptFeedback") or {}).get("blockReason"):
            found["finish"], found["done"] = "filter", True
        usage = value.get("usageMetadata")
        if usage and usage.get("candidatesTokenCount") is not None:
            found["usage"] = [usage.get("promptTokenCount"), usage.get("candidatesTokenCount")]
    else:
        kind = value.get("type")
        if kind == "response.output_text.delta":
            found["text"].append(value.get("delta", ""))
        response = value.get("response") if kind in ("response.completed", "response.incomplete") else value if value.get("object") == "response" else None
        if response:
            reason = (response.get("incomplete_details") or {}).get("reason")
            found["finish"] = finish_word(reason or response.get("status"))
            found["done"] = True
            usage = response.get("usage") or {}
            found["usage"] = [usage.get("input_tokens"), usage.get("output_tokens")]
            if kind is None:
                found["text"] += [part.get("text", "") for item in response.get("output") or [] for part in item.get("content") or []]


def read(dialect, content_type, body):
    """What a caller finds in a body: its text, how it finished, whether its terminal came, an error, the usage."""
    found = {"text": [], "finish": None, "done": False, "error": None, "usage": None}
    text = body.decode("utf-8", errors="replace")
    if "event-stream" in content_type:
        for block in re.split(r"\r?\n\r?\n", text):
            name, data = None, []
            for line in block.splitlines():
                field, _, value = line.partition(":")
                if field == "event":
                    name = value.strip()
                elif field == "data":
                    data.append(value.removeprefix(" "))
            if data:
                read_event(dialect, "\n".join(data), name, found)
    elif text.strip():
        read_event(dialect, text, None, found)
        found["done"] = found["done"] or found["finish"] is not None
    found["text"] = "".join(found["text"])
    return found
