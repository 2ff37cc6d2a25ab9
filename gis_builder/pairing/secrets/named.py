"""Credentials after a name, in a header or in a command: passwords, keys, tokens, cookies."""

from __future__ import annotations

from gis_builder.pairing.secrets.values import (
    ASSIGNED,
    LINE_END,
    LINE_START,
    QUOTE,
    could_be_literal,
    could_be_password,
    holds_random,
    is_hard_password,
    is_no_word,
    looks_keyed,
    looks_mixed,
    looks_mixed_or_long,
    looks_random,
    shapes,
)

# Names of keys except those of tables, caches and public keys. Lookbehinds after the word are many times
# faster than before it.
_KEY_NAME = r"""(?i:secret|token|credentials?|bearer|[_-]pat(?![A-Za-z])|_salt
    |key(?<=[A-Za-z0-9_. -]key)(?<!pubkey)(?<!publickey)(?<!public.key)(?<!primarykey)(?<!primary.key)
     (?<!foreignkey)(?<!foreign.key)(?<!cachekey)(?<!cache.key)
     (?<!partition.key)(?<!sort.key)(?<!index.key))"""
_KEY_GATES = "secret token key credential bearer _pat -pat _salt"
_ASSIGNED_TO_KEY = rf"""{_KEY_NAME}(?:\.base)?[\w-]{{0,30}}{ASSIGNED}(?:{QUOTE})?"""
_KEY_VALUE = r"[A-Za-z0-9+/_~-]"

KEYS = (
    *shapes(
        "aws",
        (
            "secret session",
            rf"""(?i:aws[_. -]?(?:secret[_. -]?(?:access[_. -]?)?key|session[_. -]?token)
        |secret[_. -]?access[_. -]?key|session[_. -]?token)(?:{ASSIGNED}|[ \t]{{1,4}})(?:{QUOTE})?
        (?P<value>[A-Za-z0-9/+]{{30,2000}}={{0,2}})""",
            looks_keyed,
        ),
    ),
    *shapes(
        "assignment",
        (
            _KEY_GATES,
            rf"""{_ASSIGNED_TO_KEY}(?:0x|base64:|\w{{1,12}}:)?
        (?P<value>{_KEY_VALUE}{{16,2000}}={{0,2}})(?![A-Za-z0-9+/_~.(:-])""",
            looks_random,
        ),
        # Values with several parts: "id.secret", "1/123:secret".
        (
            _KEY_GATES,
            rf"""{_ASSIGNED_TO_KEY}
        (?P<value>[\w+/~=-]{{1,80}}(?:[.:|{{]{{1,2}}[\w+/~=-]{{6,400}}){{1,6}})
        (?![\w(])""",
            looks_mixed_or_long,
        ),
        # The value of a flag.
        (
            "--",
            r"""--[\w-]{0,40}?(?:secret|token|key)[ ]["']?(?P<value>[\w+/~.-]{16,2000}={0,2})""",
            looks_random,
        ),
        # `key` alone: only values that no one types.
        ("key", r"""\b(?i:key)["']?[ ]?[:=][ ]?["']?(?P<value>[A-Za-z0-9+/]{32,100}={0,2})""", looks_mixed),
        # A short value that is alone on a line of an environment file.
        (
            _KEY_GATES,
            rf"""{LINE_START}[A-Z0-9_]{{0,40}}?(?:SECRET|TOKEN|KEY)[A-Z0-9_]{{0,20}}=(?P<value>[^\s"'`]{{8,200}})
        {LINE_END}""",
            is_hard_password,
        ),
        ("define(", r"""define\(\s?'[A-Z_]{3,30}',\s{0,8}'(?P<value>[^'\n]{40,100})'""", looks_mixed),
        (
            "phrase mnemonic",
            r"""(?i:(?:seed|recovery|secret)[ ](?:phrase|words)|mnemonic)["']?[ ]?[:=]?[ ]?["']?
        (?P<value>(?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8})""",
        ),
    ),
)


_COOKIES = r"""(?:[\w.-]{0,40}?sess(?:ion|data)?(?:_?(?:id|key|token|same_site|data))?|[\w.-]{0,40}sid|ct0
    |cf_clearance|[\w-]{0,20}csrf-?_?token|[\w-]{0,20}AuthCookie|\.AspNet[\w.-]{1,40}|wordpress_[\w-]{1,60}
    |remember_[\w-]{1,60}|(?:__Secure|__Host)-[\w.-]{1,60})"""

HEADERS = (
    *shapes(
        "authorization",
        (
            "authorization",
            rf"""(?i:authorization){ASSIGNED}["']?(?:[A-Za-z][\w-]{{1,20}}[ ]{{1,4}})?
        (?P<value>(?!(?i:bearer|basic|token|digest)\b)[A-Za-z0-9._~+/=-]{{12,4000}})""",
            is_no_word,
        ),
        ("bearer", r"(?i:\bbearer[ \t]{1,4})(?P<value>[A-Za-z0-9._~+/=-]{12,4000})", is_no_word),
        ("response=", r"""\bresponse="(?P<value>[0-9a-f]{32,64})\""""),
        (
            "-key -token",
            rf"""(?i:\b(?:x-)?[\w-]{{0,40}}?(?:api-?key|subscription-key|(?:auth|access|private|vault)-token)){ASSIGNED}
        ["']?(?P<value>[A-Za-z0-9._~+/=-]{{8,4000}})""",
            is_no_word,
        ),
    ),
    *shapes(
        "aws",
        ("signature=", r"(?:X-Amz-|\b)Signature=(?P<value>[0-9a-f]{64})"),
    ),
    *shapes(
        "assignment",
        (
            "?",
            r"""[?&;](?i:key|code|sig|signature|appid|auth|(?:[a-z]{1,12}[_-]?)?(?:token|secret|key))=
        (?![^\s&]{0,200}%(?:20|0[AaDd]|28))(?P<value>[A-Za-z0-9._~%+/-]{16,2000}={0,2})""",  # code, not a key
            looks_random,
        ),
    ),
    *shapes(
        "cookie",
        # In headers, `document.cookie`, flags of curl, cookie jars; session ids anywhere.
        (
            "cookie",
            rf"""(?i:cookies?){ASSIGNED}["']?(?P<value>[\w.$-]{{1,80}}=[^\n"'\\]{{6,8000}})""",
            holds_random,
        ),
        ("curl", r"""[ ](?:-b|--cookie)[ ]["'](?P<value>[\w.$-]{1,80}=[^\n"'\\]{6,8000})""", holds_random),
        ("true false", r"(?:TRUE|FALSE)\t\d{1,12}\t[\w.$-]{1,80}\t(?P<value>[^\s]{8,8000})", holds_random),
        (
            "sess sid ct0 cf_clearance csrf cookie .aspnet wordpress_ remember_ __secure __host",
            rf"""(?<![\w.-])(?i:{_COOKIES}){ASSIGNED}(?:{QUOTE})?
        (?P<value>[A-Za-z0-9%._~@+/-]{{20,8000}}={{0,2}})(?![\w(])""",
            looks_keyed,
        ),
    ),
)


_VALUE = r"""["']?(?P<value>[^\s"'`]{4,200})"""

COMMANDS = shapes(
    "password",
    ("--", rf"--[\w-]{{0,30}}?pass(?:w(?:or)?d|wd|phrase)?(?:=|[ ](?!-)){_VALUE}", is_hard_password),
    # Programs with a short flag for the password.
    (
        "sshpass mysql mariadb mongo sqlcmd ldap docker podman helm redis-cli isql",
        rf"""\b(?:sshpass|mysql\w{{0,12}}|mariadb[\w-]{{0,12}}|mongo\w{{0,12}}|sqlcmd
        |isql|ldap\w{{1,12}}|redis-cli
        |(?:docker|podman|helm)[ ](?:registry[ ])?login)[ ](?:[^\n]{{0,200}}?[ ])?-[pPwa][ ]?{_VALUE}""",
        could_be_literal,
    ),
    (
        "curl",
        r"""\bcurl[ ][^\n]{0,200}?(?:-u|--user)[ =]?["']?[\w.@+-]{1,80}:(?P<value>[^\s"']{3,200})""",
        could_be_password,
    ),
    (
        "http",
        r"""[ ](?:-u|--user|-a|--auth)[ =]?["']?[\w.@+-]{1,80}:(?P<value>[^\s"'@]{3,200})""",
        is_hard_password,
    ),
    (
        "htpasswd",
        rf"\bhtpasswd[ ]-\w{{0,4}}b\w{{0,4}}[ ]\S{{1,100}}[ ]\S{{1,60}}[ ]{_VALUE}",
        could_be_literal,
    ),
    ("net", rf"(?i:\bnet[ ]use[ ])[^\n]{{1,120}}?/user:\S{{1,60}}[ ]{_VALUE}", could_be_literal),
    ("pass:", rf"[ ]-pass(?:in|out)?[ ]pass:{_VALUE}", could_be_literal),
    ("storepass keypass", rf"-(?:\w{{0,4}}storepass|\w{{0,4}}keypass)[ ]{_VALUE}", could_be_literal),
    (
        "passwd docker sudo helm gh podman",
        r"""\becho[ ](?:-n[ ])?["']?(?:[\w.-]{1,40}:)?
        (?P<value>[^\s"'`|]{4,200})["']?[ ]\|[ ]
        (?:sudo[ ])?(?:passwd|chpasswd|sudo|docker|podman|helm|gh)\b""",
        could_be_literal,
    ),
    (
        "assword:",
        r"""assword:?\s?["']?[;,)\s]{1,4}send[ ](?:--[ ])?["'](?P<value>[^\s"'\\]{4,200})""",
        could_be_literal,
    ),
    # Files and protocols with one setting per line.
    ("login", r"\blogin\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(?P<value>\S{3,200})", could_be_literal),
    (
        "pgpass",
        r"(?m:^)[ >]{0,8}[\w.*-]{1,80}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w.*-]{1,60}:(?P<value>\S{3,200})(?m:$)",
        could_be_literal,
    ),
    ("pass", r"(?m:^)[ >]{0,8}PASS[ ](?P<value>\S{4,200})[ ]{0,2}\r?(?m:$)", could_be_literal),
    ("requirepass", rf"\brequirepass[ ]{_VALUE}", could_be_literal),
    ("psk", r"""\bpsk[ ]?[=:][ ]?["']?(?P<value>[^\s"']{8,64})""", could_be_literal),
    # Statements and calls.
    (
        "password identified",
        r"(?i:\b(?:identified[ ]by|password)[ ])'(?P<value>[^\s']{3,200})'",
        could_be_literal,
    ),
    (
        "login( networkcredential( mysqli( getconnection( auth( basicauth(",
        r"""(?:\blogin|NetworkCredential|mysqli|getConnection|[aA]uth)
        \((?:["'][^"'\n]{0,200}["'],[ ]{0,2}){1,2}
        ["'](?P<value>[^\s"']{4,200})["']""",
        could_be_literal,
    ),
)


# "password_hash", "passwordField", "password-reset-url" don't have a password as value.
_OTHER_SUFFIX = (
    r"(?![\w-]{0,20}?(?:hash|ref|field|input|prompt|label|hint|len|polic|reset|file|path|ur[il]|min|max|type"
    r"|valid|salt|manage|check|err|col|id|age|expir|rule|form|algo|enc|method|provid|req|stor|chang|forg|env|help"
    r"|messag|strength|gen|prot|less|script))"
)
# Excludes "PASS: some/test" of test runners, "PWD=" (a folder) and "?pwd=" (of a shared folder).
_NAME = rf"""(?i:passw(?:or)?d{_OTHER_SUFFIX}[\w-]{{0,20}}|passphrase|(?<=[_.])(?:pwd|pass)(?![A-Za-z])
    |(?:db|smtp|mail|ftp|admin|user|root|auth|proxy|redis|pg|sql|login|account)-?pass(?![A-Za-z])
    |(?<![\w/?&$-])(?:pass|pwd)(?=["'\]>]|[ ]?=))"""
_GATES = "passw passphrase pwd pass"
# Part of the pattern, so that a plain word ("was changed to X") doesn't end the search.
_SIGNED = r"""(?=[^\s"'`]{0,60}[^\sA-Za-z"'`,.;:!?)])"""

PASSWORDS = (
    *shapes(
        "url_password",
        (
            "://",
            r"""://[^\s/@:"'<>\[\]]{0,100}:(?P<value>(?!\[secret\]|[${<%])[^\s/@"'<>]{1,200})(?=@[A-Za-z0-9\[])""",
        ),
        ("://", r"://(?P<value>[A-Za-z0-9_-]{16,200})(?:@|:@)(?=[A-Za-z0-9\[])", looks_random),
    ),
    *shapes(
        "password",
        # Quoted.
        (
            _GATES,
            rf"""{_NAME}{ASSIGNED}{QUOTE}(?P<value>[^\s"'`\\]{{3,200}})\\{{0,2}}["'`](?![ ]?:)""",
            could_be_literal,
        ),
        # On a line of a settings file.
        (
            _GATES,
            rf"""{LINE_START}[\w.-]{{0,60}}?{_NAME}[ \t]{{0,8}}[:=][ \t]{{0,8}}
        (?P<value>[^\s"'`:][^\s"'`]{{3,200}})
        {LINE_END}""",
            could_be_password,
        ),
        (
            "pass: pw: pwd:",
            rf"{LINE_START}(?:[Pp]ass|[Pp]w|PW|[Pp]wd):[ ](?P<value>\S{{4,200}})",
            is_hard_password,
        ),
        # Within a line.
        (
            _GATES,
            rf"""{_NAME}{ASSIGNED}(?P<value>[^\s"'`,;&)\\:][^\s"'`,;&)\\]{{3,200}})""",
            is_hard_password,
        ),
        # In a connection string.
        (
            "password= pwd=",
            r"""(?i:[;?&](?:password|pwd)=)(?P<value>[^\s;"'&]{3,200})(?=[;&"'])""",
            could_be_password,
        ),
        # In environment variables of a command.
        (
            "pass pwd",
            r"""(?<![\w$?&])[A-Z0-9_]{0,30}(?:PASSWORD|PASSWD|PASS|PWD)=["']?(?P<value>[^\s"'`;]{4,200})""",
            could_be_password,
        ),
        ("</", rf"{_NAME}>(?P<value>[^<\s]{{3,200}})(?=</)", could_be_literal),
        # In prose.
        (
            "password passphrase pw",
            rf"""\b(?i:password|passphrase|pw|login)(?:[ ][a-z]{{1,12}}){{0,5}}?
        [ ](?:is|was|to|as|with)(?:[ ]now)?[: ]{{1,2}}["'`]?(?P<value>{_SIGNED}[^\s"'`]{{4,200}})""",
            is_hard_password,
        ),
        (
            "password",
            r"""(?i:\buser(?:name)?)[ :=]{1,2}\S{1,40}[ ,;/]{1,3}(?:and[ ])?password[ :=]{1,2}["'`]?
        (?P<value>[^\s"'`]{4,200})""",
            is_hard_password,
        ),
        (
            "log login credential",
            r"""(?i:\blog[ ]?in[ ](?:with|as|using)|credentials(?:[ ](?:are|is|were))?)[:*]{0,3}[ ]
        [`"']?[\w.@-]{1,40}[`"']?[ ]?[:/][ ]?[`"']?(?P<value>[^\s"'`]{4,200})""",
            is_hard_password,
        ),
        (
            "password |",
            r"""(?i:password)[ ]{0,20}\|\r?\n\|[-:| ]{3,80}\|\r?\n\|[^|\n]{1,60}\|[ ]
        (?P<value>[^\s|]{4,200})[ ]{1,20}\|""",
            is_hard_password,
        ),
        # Hashed, as in shadow and htpasswd files.
        (
            "$",
            r"""\$(?:2[abxy]\$\d\d\$[\w./]{50,60}|(?:apr1|[156])\$[\w./]{1,16}\$[\w./]{20,90}
        |y\$[\w./]{1,9}\$[\w./]{10,90}\$[\w./]{40,60}
        |argon2\w{1,2}\$[\w./$,=+-]{40,200})""",
        ),
    ),
)
