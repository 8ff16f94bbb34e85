"""HTTP/1.1 framing for the two ends of the scorecard, by hand, so that both can break it on purpose.

`Wire` reads from a socket with push-back, so that an end can watch for the other's leaving while it writes.
"""

import asyncio
import socket
import struct

HEAD_BYTES = 256 * 1024
BODY_BYTES = 64 * 1024 * 1024


class Gone(Exception):
    """The other end has closed or reset the connection."""


class Wire:
    """One connection, seen from one end."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.buffer = b""
        self.ended = None

    async def fill(self):
        """Reads something more; `ended` says "closed" or "reset" where nothing comes any more."""
        if self.ended:
            return False
        try:
            data = await self.reader.read(65536)
        except (ConnectionError, OSError):
            self.ended = "reset"
            return False
        if not data:
            self.ended = "closed"
            return False
        self.buffer += data
        return True

    async def until(self, mark, most):
        while mark not in self.buffer:
            if len(self.buffer) > most or not await self.fill():
                raise Gone()
        head, _, self.buffer = self.buffer.partition(mark)
        return head

    async def exactly(self, count):
        while len(self.buffer) < count:
            if not await self.fill():
                raise Gone()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    async def send(self, data):
        try:
            self.writer.write(data)
            await self.writer.drain()
        except (ConnectionError, OSError) as failure:
            self.ended = self.ended or "reset"
            raise Gone() from failure

    def reset(self):
        """Ends the connection with a RST."""
        held = self.writer.get_extra_info("socket")
        if held is not None:
            try:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
        self.writer.transport.abort()

    def close(self):
        self.writer.close()


def headers_of(head):
    """(first line, {lower-case name: value}) of a head."""
    lines = head.decode("latin-1").split("\r\n")
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    return lines[0], fields


async def read_request(wire):
    """(method, target, headers, body) of the next request; raises `Gone` where none comes whole."""
    line, fields = headers_of(await wire.until(b"\r\n\r\n", HEAD_BYTES))
    method, path, _ = line.split(" ", 2)
    if fields.get("expect", "").lower() == "100-continue":
        await wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in fields.get("transfer-encoding", "").lower():
        body = b""
        while True:
            size = int((await wire.until(b"\r\n", 1024)).split(b";")[0], 16)
            if size == 0:
                while await wire.until(b"\r\n", HEAD_BYTES):
                    pass
                return method, path, fields, body
            body += await wire.exactly(size)
            await wire.exactly(2)
            if len(body) > BODY_BYTES:
                raise Gone()
    length = int(fields.get("content-length", "0"))
    if length > BODY_BYTES:
        raise Gone()
    return method, path, fields, await wire.exactly(length)


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


LAST_CHUNK = b"0\r\n\r\n"


def read_response(raw):
    """{status, headers, body, whole} of all the bytes that came; `whole` is whether the framing reached its end."""
    while True:
        head, mark, rest = raw.partition(b"\r\n\r\n")
        if not mark:
            return {"status": None, "headers": {}, "body": b"", "whole": False}
        line, fields = headers_of(head)
        status = int(line.split(" ")[1])
        if status >= 200:
            break
        raw = rest
    if "chunked" in fields.get("transfer-encoding", "").lower():
        body, whole, at = bytearray(), False, 0
        while True:
            line_end = rest.find(b"\r\n", at)
            if line_end < 0:
                break
            try:
                size = int(rest[at:line_end].split(b";")[0], 16)
            except ValueError:
                break
            at = line_end + 2
            if size == 0:
                whole = rest.endswith(b"\r\n") and len(rest) > at
                break
            body += rest[at : at + size]
            at += size + 2
            if len(rest) < at:
                break
        return {"status": status, "headers": fields, "body": bytes(body), "whole": whole}
    if "content-length" in fields:
        length = int(fields["content-length"])
        return {"status": status, "headers": fields, "body": rest[:length], "whole": len(rest) >= length}
    return {"status": status, "headers": fields, "body": rest, "whole": None}


async def pause(seconds):
    """Waits as a script says: time itself is what such a scenario is about."""
    await asyncio.sleep(seconds)
