"""The floor: the official SDK alone, with its documented retries (two) and timeout, over one account.

Speaks JSON lines with the run: a call on stdin, its record on stdout, in the form of the raw caller's records. Calls may overlap.
The SDK hides sockets, so "end" is "complete" where it ended without an exception, and "reset" where it raised.
"""

import json
import re
import sys
import threading
import time

import openai

WORD = re.compile(r"w(\d+)\.(\d+)")
PATIENCE_SECONDS = 8
out = threading.Lock()


def runs_of(text):
    runs = []
    for attempt, number in ((int(a), int(n)) for a, n in WORD.findall(text)):
        if runs and runs[-1][0] == attempt and runs[-1][2] + 1 == number:
            runs[-1][2] = number
        else:
            runs.append([attempt, number, number])
    return runs[:20]


def make(base, job):
    now = lambda: round(time.monotonic() - job["began"], 3)  # noqa: E731
    call, leave = job["call"], job["call"].get("leave") or {}
    # https://github.com/openai/openai-python#retries and #timeouts: max_retries is 2 by default, timeout is per request.
    client = openai.OpenAI(base_url=base, api_key="account-a", max_retries=2, timeout=call.get("deadline", PATIENCE_SECONDS))
    found = {
        "sent": now(),
        "first_byte": None,
        "ended": None,
        "status": None,
        "retry_after": None,
        "end": "complete",
        "finish": None,
        "done": False,
        "error": None,
        "usage": None,
        "not_json": 0,
        "bytes": 0,
        "tail": "",
    }
    text = ""
    messages = [{"role": "user", "content": job["text"]}]
    try:
        if call.get("stream"):
            stream = client.chat.completions.create(model="score", messages=messages, stream=True, stream_options={"include_usage": True})
            found["status"] = 200
            for chunk in stream:
                found["first_byte"] = found["first_byte"] or now()
                if chunk.usage:
                    found["usage"] = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens]
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    found["finish"] = choice.finish_reason or found["finish"]
                if leave.get("when") == "words" and len(WORD.findall(text)) >= leave["after"]:
                    stream.close()
                    client.close()
                    found["end"] = "left"
                    break
            found["done"] = found["finish"] is not None
        else:
            answer = client.chat.completions.create(model="score", messages=messages)
            found["status"], text = 200, answer.choices[0].message.content or ""
            found["finish"], found["done"] = answer.choices[0].finish_reason, True
            if answer.usage:
                found["usage"] = [answer.usage.prompt_tokens, answer.usage.completion_tokens]
    except openai.APIStatusError as failure:
        found["status"], found["error"] = failure.status_code, str(failure)[:400]
        found["retry_after"] = failure.response.headers.get("retry-after")
    except openai.APITimeoutError as failure:
        found["end"], found["error"] = ("left" if "deadline" in call else "reset"), str(failure)[:400]
    except Exception as failure:  # noqa: BLE001  what the SDK lets out is what its caller sees
        found["end"], found["error"] = "reset", f"{type(failure).__name__}: {failure}"[:400]
    found["finish"] = {"content_filter": "filter"}.get(found["finish"], found["finish"])
    found["runs"], found["ended"] = runs_of(text), now()
    with out:
        print(json.dumps({"id": job["id"], "record": found}), flush=True)


def main():
    base = sys.argv[1]
    print(json.dumps({"version": openai.__version__}), flush=True)
    for line in sys.stdin:
        threading.Thread(target=make, args=(base, json.loads(line)), daemon=False).start()


main()
