"""Connections to one server, with a deadline for each exchange, and nothing sent that was not asked for."""

from __future__ import annotations

from http.cookiejar import DefaultCookiePolicy

import requests

from gis_builder._github.deadline import Deadline
from pairkit.address import Address


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: what to ask next is for us to decide. Else the next request is prepared, though not sent."""


def open_session(address: Address, user_agent: str = "aoe-toolkit") -> tuple[requests.Session, Deadline]:
    """A session without cookies that follows no redirect, and the deadline that its exchanges keep.

    Its requests need an authentication object, lest a `.netrc` file signs them.
    """
    session, deadline = _Session(), Deadline()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.update({"User-Agent": user_agent, "Accept-Encoding": "gzip"})
    for scheme in ("https://", "http://"):
        session.mount(scheme, deadline)
    # What is for this machine goes through no proxy.
    session.trust_env = not address.is_loopback
    return session, deadline
