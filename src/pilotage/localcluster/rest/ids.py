"""UIDs and name suffixes from a seed: unguessable with a random seed, repeatable with a fixed one."""

from __future__ import annotations

from hashlib import blake2b

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by accident
_SUFFIX_LENGTH = 5


class Ids:
    """A stream of ids. The same seed gives the same stream."""

    def __init__(self, seed: bytes) -> None:
        """`seed`: up to 64 bytes."""
        self._seed = seed
        self._count = 0

    def uid(self) -> str:
        """A UUID of version 4 in its usual text form."""
        raw = bytearray(self._next(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def suffix(self) -> str:
        """Five characters for `generateName`."""
        number = int.from_bytes(self._next(8), "big")
        letters = []
        for _ in range(_SUFFIX_LENGTH):
            number, index = divmod(number, len(_SUFFIX_ALPHABET))
            letters.append(_SUFFIX_ALPHABET[index])
        return "".join(letters)

    def _next(self, size: int) -> bytes:
        self._count += 1
        return blake2b(self._count.to_bytes(8, "big"), digest_size=size, key=self._seed).digest()
