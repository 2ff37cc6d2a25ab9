"""Passwords that are told by the command, statement or call that takes them."""

from __future__ import annotations

from gis_builder._secrets.shape import shape
from gis_builder._secrets.values import could_be_literal, could_be_password, is_hard_password

_VALUE = r"""["']?(?P<value>[^\s"'`]{4,200})"""

COMMANDS = (
    shape(
        "password",
        "--",
        rf"--[\w-]{{0,30}}?pass(?:w(?:or)?d|wd|phrase)?(?:=|[ ](?!-)){_VALUE}",
        is_hard_password,
    ),
    # Programs whose short flag is followed by a password.
    shape(
        "password",
        "sshpass mysql mariadb mongo sqlcmd ldap docker podman helm redis-cli isql",
        rf"""\b(?:sshpass|mysql\w{{0,12}}|mariadb[\w-]{{0,12}}|mongo\w{{0,12}}|sqlcmd
        |isql|ldap\w{{1,12}}|redis-cli
        |(?:docker|podman|helm)[ ](?:registry[ ])?login)[ ](?:[^\n]{{0,200}}?[ ])?-[pPwa][ ]?{_VALUE}""",
        could_be_literal,
    ),
    shape(
        "password",
        "curl",
        r"""\bcurl[ ][^\n]{0,200}?(?:-u|--user)[ =]?["']?[\w.@+-]{1,80}:(?P<value>[^\s"']{3,200})""",
        could_be_password,
    ),
    shape(
        "password",
        "http",
        r"""[ ](?:-u|--user|-a|--auth)[ =]?["']?[\w.@+-]{1,80}:(?P<value>[^\s"'@]{3,200})""",
        is_hard_password,
    ),
    shape(
        "password",
        "htpasswd",
        rf"\bhtpasswd[ ]-\w{{0,4}}b\w{{0,4}}[ ]\S{{1,100}}[ ]\S{{1,60}}[ ]{_VALUE}",
        could_be_literal,
    ),
    shape(
        "password", "net", rf"(?i:\bnet[ ]use[ ])[^\n]{{1,120}}?/user:\S{{1,60}}[ ]{_VALUE}", could_be_literal
    ),
    shape("password", "pass:", rf"[ ]-pass(?:in|out)?[ ]pass:{_VALUE}", could_be_literal),
    shape(
        "password",
        "storepass keypass",
        rf"-(?:\w{{0,4}}storepass|\w{{0,4}}keypass)[ ]{_VALUE}",
        could_be_literal,
    ),
    shape(
        "password",
        "passwd docker sudo helm gh podman",
        r"""\becho[ ](?:-n[ ])?["']?(?:[\w.-]{1,40}:)?
        (?P<value>[^\s"'`|]{4,200})["']?[ ]\|[ ]
        (?:sudo[ ])?(?:passwd|chpasswd|sudo|docker|podman|helm|gh)\b""",
        could_be_literal,
    ),
    shape(
        "password",
        "assword:",
        r"""assword:?\s?["']?[;,)\s]{1,4}send[ ](?:--[ ])?["'](?P<value>[^\s"'\\]{4,200})""",
        could_be_literal,
    ),
    # Files and protocols of one setting a line.
    shape(
        "password",
        "login",
        r"\blogin\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(?P<value>\S{3,200})",
        could_be_literal,
    ),
    shape(
        "password",
        "pgpass",
        r"(?m:^)[ >]{0,8}[\w.*-]{1,80}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w.*-]{1,60}:(?P<value>\S{3,200})(?m:$)",
        could_be_literal,
    ),
    shape(
        "password", "pass", r"(?m:^)[ >]{0,8}PASS[ ](?P<value>\S{4,200})[ ]{0,2}\r?(?m:$)", could_be_literal
    ),
    shape("password", "requirepass", rf"\brequirepass[ ]{_VALUE}", could_be_literal),
    shape("password", "psk", r"""\bpsk[ ]?[=:][ ]?["']?(?P<value>[^\s"']{8,64})""", could_be_literal),
    # Statements and calls.
    shape(
        "password",
        "password identified",
        r"(?i:\b(?:identified[ ]by|password)[ ])'(?P<value>[^\s']{3,200})'",
        could_be_literal,
    ),
    shape(
        "password",
        "login( networkcredential( mysqli( getconnection( auth( basicauth(",
        r"""(?:\blogin|NetworkCredential|mysqli|getConnection|[aA]uth)
        \((?:["'][^"'\n]{0,200}["'],[ ]{0,2}){1,2}
        ["'](?P<value>[^\s"']{4,200})["']""",
        could_be_literal,
    ),
)
