"""A client that sends what a test wants, and reads to the end."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


async def fetch(port: int, path: str, method: str = "GET", **headers: str) -> Answer:
    lines = [f"{method} {path} HTTP/1.1", "Host: node", *(f"{name}: {value}" for name, value in headers.items())]
    return parsed(await sent(port, ("\r\n".join(lines) + "\r\n\r\n").encode()))


async def sent(port: int, data: bytes) -> bytes:
    """What comes back until the server closes; nothing if it cuts the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def parsed(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)
