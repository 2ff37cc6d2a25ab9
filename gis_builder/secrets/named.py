"""Credentials that are told by the name before them: passwords, headers, cookies and random values."""

from __future__ import annotations

from gis_builder.secrets.shape import shape
from gis_builder.secrets.values import (
    could_be_password,
    is_hard_password,
    is_no_word,
    looks_keyed,
    looks_random,
)

# How a name is given its value: `name: `, `"name" => `, `["name"] = `, `\"name\":`; then maybe `"` or `\"`.
_GIVEN = r"""[\\"'`\]]{0,4}[ \t]{0,8}(?:=>|:=|:|={1,2})[ \t]{0,8}"""
_QUOTE = r"""\\?["'`]"""
_LINE_START = r"(?m:^)[ \t>+|-]{0,20}(?:(?:export|set|ENV|-e|--env)[ ])?"
_LINE_END = r"(?=[ \t]{0,20}\\?\r?(?m:$))"

# "PASS: some/test" is what test runners print, "PWD=" names a folder and "?pwd=" opens a shared one.
_LOGIN_NAME = r"""(?i:passw(?:or)?d[\w-]{0,20}|passphrase|(?<=[_.])(?:pwd|pass)(?![A-Za-z])
    |(?<![\w/-])pass(?=["'\]]|[ ]?=))"""
_LOGIN_GATES = "passw passphrase pwd pass"
_KEY_NAME = r"""(?i:secret|token|credentials?|(?:api|access|private|auth|account|signing|encryption|app|client
    |license|master|storage|service)[_-]?key)"""
_KEY_GATES = "secret token key credential"

_HEADERS = (
    shape(
        "authorization",
        "authorization bearer",
        r"""(?i:\bauthorization["']?[ \t]{0,4}[:=,][ \t]{0,4}["']?
            (?:(?:bearer|basic|token|digest|negotiate)[ \t]{1,4})?
        |\bbearer[ \t]{1,4})
        (?P<value>(?!(?i:bearer|basic|token|digest)\b)[A-Za-z0-9._~+/=-]{12,4000})""",
        is_no_word,
    ),
    shape(
        "authorization",
        "key: key' key\" token: token' token\"",
        r"""(?i:\b(?:x-)?(?:api-?key|auth-token|access-token|private-token|vault-token)["']?
        [ \t]{0,4}[:,][ \t]{0,4})["']?(?P<value>[A-Za-z0-9._~+/=-]{8,4000})""",
        is_no_word,
    ),
    shape(
        "cookie",
        "cookie",
        r"""(?i:\b(?:set-)?cookie["']?[ \t]{0,4}[:,][ \t]{0,4})["']?
        (?P<value>[\w.$-]{1,80}=[^\s"'\\;]{0,4000}(?:;[ ]?[\w.$-]{1,80}(?:=[^\s"'\\;]{0,4000})?){0,60})""",
        is_no_word,
    ),
    shape(
        "cookie",
        "sess .sid",
        rf"""(?i:sess(?:ion)?(?:_?(?:id|key|token))?|connect\.sid){_GIVEN}(?:{_QUOTE})?
        (?P<value>[A-Za-z0-9%._~+/-]{{20,2000}}={{0,2}})(?![\w(])""",
        looks_random,
    ),
)
_PASSWORDS = (
    shape(
        "url_password",
        "://",
        r"""://[^\s/@:"'<>\[\]]{0,100}:(?P<value>(?!\[secret\])[^\s/@"'<>]{1,200})(?=@[A-Za-z0-9\[])""",
    ),
    # In quotation marks.
    shape(
        "password",
        _LOGIN_GATES,
        rf"""{_LOGIN_NAME}{_GIVEN}{_QUOTE}(?P<value>[^\s"'`\\]{{3,200}})\\?["'`]""",
        could_be_password,
    ),
    # Alone on a line, as in a file of settings.
    shape(
        "password",
        _LOGIN_GATES,
        rf"""{_LINE_START}[\w.-]{{0,60}}?{_LOGIN_NAME}[ \t]{{0,8}}[:=][ \t]{{0,8}}
        (?P<value>[^\s"'`]{{4,200}}){_LINE_END}""",
        could_be_password,
    ),
    # In the midst of a line.
    shape(
        "password",
        _LOGIN_GATES,
        rf"""{_LOGIN_NAME}{_GIVEN}(?P<value>[^\s"'`,;&)\\]{{4,200}})""",
        is_hard_password,
    ),
    # In a connection string.
    shape(
        "password",
        "password= pwd=",
        r"""(?i:[;?&](?:password|pwd)=)(?P<value>[^\s;"'&]{3,200})(?=[;&"'])""",
        could_be_password,
    ),
    # In a command, in .netrc, in XML, in prose.
    shape(
        "password",
        "--pass sshpass password",
        r"""(?:--pass(?:word|wd|phrase)?[ ]|sshpass[ ]-p[ ]?|\bpassword[ ](?:is|was)[: ]{1,2})
        ["'`]?(?P<value>[^\s"'`]{4,200})""",
        is_hard_password,
    ),
    shape(
        "password",
        "curl",
        r"""[ ](?:-u|--user)[ =]?["']?[\w.@+-]{1,80}:(?P<value>[^\s"'@]{3,200})""",
        could_be_password,
    ),
    shape(
        "password",
        "login",
        r"""\blogin\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(?P<value>[^\s"'`]{3,200})""",
        could_be_password,
    ),
    shape(
        "password",
        "password> passwd> pwd>",
        r"""(?i:<[\w:.-]{0,40}(?:password|passwd|pwd)>)(?P<value>[^<\s]{3,200})(?=</)""",
        could_be_password,
    ),
)
_KEYS = (
    shape(
        "aws",
        "aws_s awss secret_access secretaccess sessiontoken",
        rf"""(?i:aws_?(?:secret_?(?:access_?)?key|session_?token)|secret_?access_?key|sessiontoken)
        (?:{_GIVEN}|[ \t]{{1,4}})(?:{_QUOTE})?(?P<value>[A-Za-z0-9/+]{{30,2000}}={{0,2}})""",
        looks_keyed,
    ),
    shape(
        "assignment",
        _KEY_GATES,
        rf"""{_KEY_NAME}[\w-]{{0,30}}{_GIVEN}(?:{_QUOTE})?
        (?P<value>[A-Za-z0-9+/_~-]{{16,512}}={{0,2}})(?![A-Za-z0-9+/_~.(:-])""",
        looks_random,
    ),
    # A short one, alone on a line of an environment.
    shape(
        "assignment",
        _KEY_GATES,
        rf"""{_LINE_START}[A-Z0-9_]{{0,40}}?(?:SECRET|TOKEN|KEY)[A-Z0-9_]{{0,20}}=
        (?P<value>[^\s"'`]{{8,200}}){_LINE_END}""",
        is_hard_password,
    ),
)

NAMED = (*_HEADERS, *_PASSWORDS, *_KEYS)
