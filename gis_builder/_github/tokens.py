"""Tokens, and that they are shown to nobody but the server they belong to."""

from __future__ import annotations

from collections.abc import Callable

import requests
from requests.auth import AuthBase

from gis_builder._settings.crawl import read_root
from pairkit.address import origin_of

_SHORTEST_SECRET = 12
_MASK = "****"


class Token(AuthBase):
    """A secret that signs requests and never prints itself.

    It is handed to `requests` as an authentication object, so that neither a `.netrc` file nor a session's
    headers take part, and it signs for one origin only: what goes elsewhere goes unsigned. Its `name` tells a
    person which of several it is.
    """

    __slots__ = ("_address", "_last", "_secret", "name")

    def __init__(self, secret: str | Callable[[], str], api_url: str, name: str = "the token") -> None:
        self._secret, self._last = secret, secret if isinstance(secret, str) else ""
        self.name = name
        self._address = read_root(api_url)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Sign a request, as `requests` asks its authentication objects to once the URL is made up."""
        if origin_of(request.url or "") == self._address.origin and (secret := self.reveal()):
            request.headers["Authorization"] = f"Bearer {secret}"
        return request

    def reveal(self) -> str:
        """The secret itself."""
        self._last = self._secret if isinstance(self._secret, str) else self._secret()
        return self._last

    def mask(self, text: str) -> str:
        """`text` without the secret that was last sent, should a server have echoed it."""
        return text.replace(self._last, _MASK) if self._is_secret else text

    def mask_bytes(self, body: bytes) -> bytes:
        """See `mask`."""
        return body.replace(self._last.encode(), _MASK.encode()) if self._is_secret else body

    @property
    def _is_secret(self) -> bool:
        # A word as short as an emulator's token is in every other message, and is no secret.
        return len(self._last) >= _SHORTEST_SECRET

    def __repr__(self) -> str:
        return f"Token({_MASK})"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a token is not to be stored")
