"""The keys that this process trusts: read from their source, and again while they are in use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .clock import clock
from .errors import Unavailable
from .http import IO, Answer, Call, ConnectionFailed, backoff
from .jcs import parse
from .keys import Key, KeySet

#: Seconds for which keys are used after they were read, at most. A revoked key is not trusted longer.
_MAX_AGE = 600.0
#: The same, at least, if ``Cache-Control`` has a shorter time; and seconds between reads because of an unknown key id.
_MIN_AGE = 60.0
#: Seconds before the end of their age, from which one call reads the keys again. The others go on with the old ones.
_READING = 10.0


class Keyring:
    """The keys of a JWK set, of a file with one, or of its address. A given set is not read again."""

    def __init__(self, source: str | Mapping[str, Any], timeout: float) -> None:
        self._source, self._timeout = source, timeout
        self._keys: KeySet | None = None
        self._tried = self._until = 0.0

    async def keys(self, io: IO) -> KeySet:
        """Returns the keys. Reads them again if they will soon be too old.

        :raises Unavailable: They can't be read. Then nothing can be verified.
        """
        now, keys = clock(), self._keys
        if keys is None or now >= self._until:
            return await self._read(io)
        if now >= self._until - _READING and now >= self._tried + _READING:
            try:
                return await self._read(io)
            except Unavailable:
                if clock() >= self._until:
                    raise
        return keys

    async def find(self, io: IO, kid: str) -> Key | None:
        """Returns the key with this id. Reads the keys again if it is unknown, at most once a minute."""
        key = (await self.keys(io)).get(kid)
        if key is None and not isinstance(self._source, Mapping) and clock() >= self._tried + _MIN_AGE:
            key = (await self._read(io)).get(kid)
        return key

    async def _read(self, io: IO) -> KeySet:
        source, began = self._source, clock()
        self._tried, age = began, _MAX_AGE
        try:
            if isinstance(source, Mapping):
                keys, age = KeySet(source), float("inf")
            elif "://" not in source:
                with open(source, "rb") as file:
                    keys = KeySet(parse(file.read()))
            else:
                answer = await self._fetch(io, source)
                keys, age = KeySet(parse(answer.body)), _age(answer)
        except (OSError, ValueError, RecursionError) as error:
            raise Unavailable(f"the keys of the service can't be read from {source}: {error}") from None
        self._keys, self._until = keys, began + age
        return keys

    async def _fetch(self, io: IO, address: str) -> Answer:
        """Fetches a document, with up to three attempts."""
        ends = clock() + self._timeout
        for attempt in (1, 2, 3):
            try:
                answer = await io.send(Call("GET", address, {"accept": "application/json"}), ends - clock())
                if answer.status == 200:
                    return answer
                problem = ValueError(f"status {answer.status}")
            except ConnectionFailed as error:
                problem = ValueError(str(error))
            if (pause := backoff(attempt)) >= ends - clock():
                break
            await io.sleep(pause)
        raise problem


def _age(answer: Answer) -> float:
    """Returns the seconds for which fetched keys are used: those of ``Cache-Control``, within limits."""
    found = re.search(r"(?:^|[\s,])max-age=([0-9]{1,9})", answer.headers.get("cache-control", ""), re.ASCII)
    return min(max(float(found[1]), _MIN_AGE), _MAX_AGE) if found else _MAX_AGE
