"""Random values that are given to a name such as `token`, `secret` or `api_key`."""

from __future__ import annotations

from gis_builder._secrets.names import GIVEN, LINE_END, LINE_START, QUOTE
from gis_builder._secrets.shape import shape
from gis_builder._secrets.values import (
    is_hard_password,
    looks_keyed,
    looks_mixed,
    looks_mixed_or_long,
    looks_random,
)

# Any name of a key but those of tables, caches and public keys.
# Looking behind after the word is many times faster than before it.
_NAME = r"""(?i:secret|token|credentials?|bearer|[_-]pat(?![A-Za-z])|_salt
    |key(?<=[A-Za-z0-9_. -]key)(?<!pubkey)(?<!publickey)(?<!public.key)(?<!primarykey)(?<!primary.key)
     (?<!foreignkey)(?<!foreign.key)(?<!cachekey)(?<!cache.key)
     (?<!partition.key)(?<!sort.key)(?<!index.key))"""
_GATES = "secret token key credential bearer _pat -pat _salt"
_GIVEN_TO_KEY = rf"""{_NAME}(?:\.base)?[\w-]{{0,30}}{GIVEN}(?:{QUOTE})?"""
_VALUE = r"[A-Za-z0-9+/_~-]"

KEYS = (
    shape(
        "aws",
        "secret session",
        rf"""(?i:aws[_. -]?(?:secret[_. -]?(?:access[_. -]?)?key|session[_. -]?token)
        |secret[_. -]?access[_. -]?key|session[_. -]?token)(?:{GIVEN}|[ \t]{{1,4}})(?:{QUOTE})?
        (?P<value>[A-Za-z0-9/+]{{30,2000}}={{0,2}})""",
        looks_keyed,
    ),
    shape(
        "assignment",
        _GATES,
        rf"""{_GIVEN_TO_KEY}(?:0x|base64:|\w{{1,12}}:)?
        (?P<value>{_VALUE}{{16,2000}}={{0,2}})(?![A-Za-z0-9+/_~.(:-])""",
        looks_random,
    ),
    # A value of several parts: "id.secret", "1/123:secret".
    shape(
        "assignment",
        _GATES,
        rf"""{_GIVEN_TO_KEY}
        (?P<value>[\w+/~=-]{{1,80}}(?:[.:|{{]{{1,2}}[\w+/~=-]{{6,400}}){{1,6}})
        (?![\w(])""",
        looks_mixed_or_long,
    ),
    # As a flag's value.
    shape(
        "assignment",
        "--",
        r"""--[\w-]{0,40}?(?:secret|token|key)[ ]["']?(?P<value>[\w+/~.-]{16,2000}={0,2})""",
        looks_random,
    ),
    # A key by no other name: only what nobody types.
    shape(
        "assignment",
        "key",
        r"""\b(?i:key)["']?[ ]?[:=][ ]?["']?(?P<value>[A-Za-z0-9+/]{32,100}={0,2})""",
        looks_mixed,
    ),
    # A short one, alone on a line of an environment.
    shape(
        "assignment",
        _GATES,
        rf"""{LINE_START}[A-Z0-9_]{{0,40}}?(?:SECRET|TOKEN|KEY)[A-Z0-9_]{{0,20}}=(?P<value>[^\s"'`]{{8,200}})
        {LINE_END}""",
        is_hard_password,
    ),
    shape(
        "assignment",
        "define(",
        r"""define\(\s?'[A-Z_]{3,30}',\s{0,8}'(?P<value>[^'\n]{40,100})'""",
        looks_mixed,
    ),
    shape(
        "assignment",
        "phrase mnemonic",
        r"""(?i:(?:seed|recovery|secret)[ ](?:phrase|words)|mnemonic)["']?[ ]?[:=]?[ ]?["']?
        (?P<value>(?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8})""",
    ),
)
