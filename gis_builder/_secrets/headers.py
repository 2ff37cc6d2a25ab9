"""What signs requests: Authorization and API key headers, signed links, cookies and session ids."""

from __future__ import annotations

from gis_builder._secrets.names import GIVEN, QUOTE
from gis_builder._secrets.shape import shape
from gis_builder._secrets.values import holds_random, is_no_word, looks_keyed, looks_random

_COOKIES = r"""(?:[\w.-]{0,40}?sess(?:ion|data)?(?:_?(?:id|key|token|same_site|data))?|[\w.-]{0,40}sid|ct0
    |cf_clearance|[\w-]{0,20}csrf-?_?token|[\w-]{0,20}AuthCookie|\.AspNet[\w.-]{1,40}|wordpress_[\w-]{1,60}
    |remember_[\w-]{1,60}|(?:__Secure|__Host)-[\w.-]{1,60})"""

HEADERS = (
    shape(
        "authorization",
        "authorization",
        rf"""(?i:authorization){GIVEN}["']?(?:[A-Za-z][\w-]{{1,20}}[ ]{{1,4}})?
        (?P<value>(?!(?i:bearer|basic|token|digest)\b)[A-Za-z0-9._~+/=-]{{12,4000}})""",
        is_no_word,
    ),
    shape(
        "authorization",
        "bearer",
        r"(?i:\bbearer[ \t]{1,4})(?P<value>[A-Za-z0-9._~+/=-]{12,4000})",
        is_no_word,
    ),
    shape("authorization", "response=", r"""\bresponse="(?P<value>[0-9a-f]{32,64})\""""),
    shape(
        "authorization",
        "-key -token",
        rf"""(?i:\b(?:x-)?[\w-]{{0,40}}?(?:api-?key|subscription-key|(?:auth|access|private|vault)-token)){GIVEN}
        ["']?(?P<value>[A-Za-z0-9._~+/=-]{{8,4000}})""",
        is_no_word,
    ),
    shape("aws", "signature=", r"(?:X-Amz-|\b)Signature=(?P<value>[0-9a-f]{64})"),
    shape(
        "assignment",
        "?",
        r"""[?&;](?i:key|code|sig|signature|appid|auth|(?:[a-z]{1,12}[_-]?)?(?:token|secret|key))=
        (?![^\s&]{0,200}%(?:20|0[AaDd]|28))(?P<value>[A-Za-z0-9._~%+/-]{16,2000}={0,2})""",  # code, not a key
        looks_random,
    ),
    # Cookies: in a header or a browser's variable, a command's flag, a cookie jar; session ids anywhere.
    shape(
        "cookie",
        "cookie",
        rf"""(?i:cookies?){GIVEN}["']?(?P<value>[\w.$-]{{1,80}}=[^\n"'\\]{{6,8000}})""",
        holds_random,
    ),
    shape(
        "cookie",
        "curl",
        r"""[ ](?:-b|--cookie)[ ]["'](?P<value>[\w.$-]{1,80}=[^\n"'\\]{6,8000})""",
        holds_random,
    ),
    shape(
        "cookie",
        "true false",
        r"(?:TRUE|FALSE)\t\d{1,12}\t[\w.$-]{1,80}\t(?P<value>[^\s]{8,8000})",
        holds_random,
    ),
    shape(
        "cookie",
        "sess sid ct0 cf_clearance csrf cookie .aspnet wordpress_ remember_ __secure __host",
        rf"""(?<![\w.-])(?i:{_COOKIES}){GIVEN}(?:{QUOTE})?
        (?P<value>[A-Za-z0-9%._~@+/-]{{20,8000}}={{0,2}})(?![\w(])""",
        looks_keyed,
    ),
)
