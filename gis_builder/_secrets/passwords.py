"""Passwords: told by the name before them, by the command that takes them, or by how they are hashed."""

from __future__ import annotations

from gis_builder._secrets.names import GIVEN, LINE_END, LINE_START, QUOTE
from gis_builder._secrets.shape import shape
from gis_builder._secrets.values import could_be_literal, could_be_password, is_hard_password, looks_random

# "password_hash", "passwordField", "password-reset-url": names of something else than a password.
_OF_ELSE = (
    r"(?![\w-]{0,20}?(?:hash|ref|field|input|prompt|label|hint|len|polic|reset|file|path|ur[il]|min|max|type"
    r"|valid|salt|manage|check|err|col|id|age|expir|rule|form|algo|enc|method|provid|req|stor|chang|forg|env|help"
    r"|messag|strength|gen|prot|less|script))"
)
# "PASS: some/test" is what test runners print, "PWD=" names a folder and "?pwd=" opens a shared one.
_NAME = rf"""(?i:passw(?:or)?d{_OF_ELSE}[\w-]{{0,20}}|passphrase|(?<=[_.])(?:pwd|pass)(?![A-Za-z])
    |(?:db|smtp|mail|ftp|admin|user|root|auth|proxy|redis|pg|sql|login|account)-?pass(?![A-Za-z])
    |(?<![\w/?&$-])(?:pass|pwd)(?=["'\]>]|[ ]?=))"""
_GATES = "passw passphrase pwd pass"
# In the pattern itself, so that a word which is none ("was changed to X") doesn't end the search.
_SIGNED = r"""(?=[^\s"'`]{0,60}[^\sA-Za-z"'`,.;:!?)])"""

PASSWORDS = (
    shape(
        "url_password",
        "://",
        r"""://[^\s/@:"'<>\[\]]{0,100}:(?P<value>(?!\[secret\]|[${<%])[^\s/@"'<>]{1,200})(?=@[A-Za-z0-9\[])""",
    ),
    shape(
        "url_password", "://", r"://(?P<value>[A-Za-z0-9_-]{16,200})(?:@|:@)(?=[A-Za-z0-9\[])", looks_random
    ),
    # In quotation marks.
    shape(
        "password",
        _GATES,
        rf"""{_NAME}{GIVEN}{QUOTE}(?P<value>[^\s"'`\\]{{3,200}})\\{{0,2}}["'`](?![ ]?:)""",
        could_be_literal,
    ),
    # Alone on a line, as in a file of settings.
    shape(
        "password",
        _GATES,
        rf"""{LINE_START}[\w.-]{{0,60}}?{_NAME}[ \t]{{0,8}}[:=][ \t]{{0,8}}
        (?P<value>[^\s"'`:][^\s"'`]{{3,200}})
        {LINE_END}""",
        could_be_password,
    ),
    shape(
        "password",
        "pass: pw: pwd:",
        rf"{LINE_START}(?:[Pp]ass|[Pp]w|PW|[Pp]wd):[ ](?P<value>\S{{4,200}})",
        is_hard_password,
    ),
    # In the midst of a line.
    shape(
        "password",
        _GATES,
        rf"""{_NAME}{GIVEN}(?P<value>[^\s"'`,;&)\\:][^\s"'`,;&)\\]{{3,200}})""",
        is_hard_password,
    ),
    # In a connection string.
    shape(
        "password",
        "password= pwd=",
        r"""(?i:[;?&](?:password|pwd)=)(?P<value>[^\s;"'&]{3,200})(?=[;&"'])""",
        could_be_password,
    ),
    # In the environment of a command.
    shape(
        "password",
        "pass pwd",
        r"""(?<![\w$?&])[A-Z0-9_]{0,30}(?:PASSWORD|PASSWD|PASS|PWD)=["']?(?P<value>[^\s"'`;]{4,200})""",
        could_be_password,
    ),
    shape("password", "</", rf"{_NAME}>(?P<value>[^<\s]{{3,200}})(?=</)", could_be_literal),
    # In prose.
    shape(
        "password",
        "password passphrase pw",
        rf"""\b(?i:password|passphrase|pw|login)(?:[ ][a-z]{{1,12}}){{0,5}}?
        [ ](?:is|was|to|as|with)(?:[ ]now)?[: ]{{1,2}}["'`]?(?P<value>{_SIGNED}[^\s"'`]{{4,200}})""",
        is_hard_password,
    ),
    shape(
        "password",
        "password",
        r"""(?i:\buser(?:name)?)[ :=]{1,2}\S{1,40}[ ,;/]{1,3}(?:and[ ])?password[ :=]{1,2}["'`]?
        (?P<value>[^\s"'`]{4,200})""",
        is_hard_password,
    ),
    shape(
        "password",
        "log login credential",
        r"""(?i:\blog[ ]?in[ ](?:with|as|using)|credentials(?:[ ](?:are|is|were))?)[:*]{0,3}[ ]
        [`"']?[\w.@-]{1,40}[`"']?[ ]?[:/][ ]?[`"']?(?P<value>[^\s"'`]{4,200})""",
        is_hard_password,
    ),
    shape(
        "password",
        "password |",
        r"""(?i:password)[ ]{0,20}\|\r?\n\|[-:| ]{3,80}\|\r?\n\|[^|\n]{1,60}\|[ ]
        (?P<value>[^\s|]{4,200})[ ]{1,20}\|""",
        is_hard_password,
    ),
    # Hashed, as in shadow and htpasswd files.
    shape(
        "password",
        "$",
        r"""\$(?:2[abxy]\$\d\d\$[\w./]{50,60}|(?:apr1|[156])\$[\w./]{1,16}\$[\w./]{20,90}
        |y\$[\w./]{1,9}\$[\w./]{10,90}\$[\w./]{40,60}
        |argon2\w{1,2}\$[\w./$,=+-]{40,200})""",
    ),
)
