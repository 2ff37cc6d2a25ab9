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

# Whole words, unlike "tokenizer" and "monkey", except keys of tables and caches, public keys, and properties
# ("token_limit"). Lookbehinds after the word are many times faster than before it.
_KEY_NAME = r"""(?:(?i:secret|token|credential|bearer(?<![a-z]bearer)|[_-]pat|_salt
    |key(?<=[A-Za-z0-9_. -]key)(?<!(?:mon|don|tur|hot|hoc|joc|pub)key)(?<!turnkey)(?<!whiskey)
     (?<!publickey)(?<!public.key)(?<!primarykey)(?<!primary.key)
     (?<!foreignkey)(?<!foreign.key)(?<!cachekey)(?<!cache.key)
     (?<!partition.key)(?<!sort.key)(?<!index.key))
    (?:(?<=[A-Z])(?:S|ID)?(?![A-Z])|(?<=[a-z])(?:s|id|key|value)?(?![a-z])|(?<=[a-z])SECRET)
    (?![\w-]{0,30}?(?i:name|path|file|folder|director|provider|class|type|count|length|limit|index|size|model
        |manager|prefix|field|column|format|algo|helper|process|hash|digest|usage|fingerp|endpoint|ur[il]\b)))"""
_KEY_GATES = "secret token key credential bearer _pat -pat _salt"
_ASSIGNED_TO_KEY = rf"""{_KEY_NAME}(?:\.base)?[\w-]{{0,30}}{ASSIGNED}(?:{QUOTE})?"""
_LONG_VALUE = r"[A-Za-z0-9+/_~-]{16,2000}={0,2}"

# Labels in other languages. Names in Latin letters begin a word.
_LABEL = r"""(?i:(?<![^\W_])(?:(?:pass|kenn)wort|mot[ ]de[ ]passe|contrase[ñn]a|clave|senha|palavra[ -]passe
    |parola|has[łl]o|wachtwoord|[şs]ifre(?:niz)?)|密[码碼]|口令|パスワード|暗証番号|비밀번호|비번|암호|парол[ья])"""
_LABEL_GATES = """wort mot contrase clave senha palavra parola hasło haslo woord ifre 密码 密碼 口令
    パスワード 暗証番号 비밀번호 비번 암호 парол"""
_KEY_LABEL = r"""(?i:токен|ключ|令牌|密[钥鑰]|秘[钥鑰]|トークン|キー|토큰|키|schlüssel|jeton|clé|clave|chave
    |chiave|klucz|sleutel|anahtar)(?:[ ](?:d['’]|d[aeo][ ])?(?i:api|acceso|acesso|accès))?"""
_KEY_LABEL_GATES = """токен ключ 令牌 密 秘 トークン キー 토큰 키 schlüssel jeton clé clave chave chiave klucz
    sleutel anahtar"""
_QUOTED = rf"""{QUOTE}(?P<value>[^\s"'`\\]{{3,200}})\\{{0,2}}["'`](?![ ]?:)"""
# Cells of tables, but not their heads: "| password | abc |".
_CELL = r"[|>][ *`]{0,20}[\w. -]{0,30}?"
_NEXT = r"(?:[ *`]{0,20}\|[ *`]{0,20}|</t[dh]>\s{0,20}<td>)"
_CELL_END = r"(?=[ *`]{0,20}(?:\|[ ]{0,20}(?!\r?\n[ >]{0,8}\|[ ]?[:-])(?m:$)|</td>))"

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
        (_KEY_LABEL_GATES, rf"{_KEY_LABEL}{ASSIGNED}(?:{QUOTE})?(?P<value>{_LONG_VALUE})", looks_random),
        (_KEY_GATES, rf"{_CELL}{_KEY_NAME}{_NEXT}(?P<value>{_LONG_VALUE}){_CELL_END}", looks_random),
        # With signs, as in Django's settings.
        (
            "secret",
            rf"""(?i:secret)[\w-]{{0,30}}{ASSIGNED}{QUOTE}
        (?P<value>(?!\w{{2,9}}://|[${{]{{2}}|<)[^\s"'`\\]{{24,200}})["'`]""",
            looks_random,
        ),
        (
            _KEY_GATES,
            rf"""{_ASSIGNED_TO_KEY}(?:0x|base64:|\w{{1,12}}:)?
        (?P<value>{_LONG_VALUE})(?![A-Za-z0-9+/_~.(:-])""",
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
            rf"""--[\w-]{{0,40}}?{_KEY_NAME}[ ]["']?(?P<value>[\w+/~.-]{{16,2000}}={{0,2}})""",
            looks_random,
        ),
        # `key` alone: only values that no one types.
        ("key", r"""\b(?i:key)["']?[ ]?[:=][ ]?["']?(?P<value>[A-Za-z0-9+/]{32,100}={0,2})""", looks_mixed),
        ("login(", r"""\blogin\([^()\n]{0,60}?\bkey=["'](?P<value>[\w-]{20,255})["']""", looks_keyed),
        # A short value that is alone on a line of an environment file.
        (
            _KEY_GATES,
            rf"""{LINE_START}[A-Z0-9_]{{0,40}}?{_KEY_NAME}(?<=[A-Z])[A-Z0-9_]{{0,20}}=
        (?P<value>[^\s"'`]{{8,200}}){LINE_END}""",
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
    *shapes("aws", ("signature=", r"(?:X-Amz-|\b)Signature=(?P<value>[0-9a-f]{64})")),
    *shapes(
        "assignment",
        (
            "?",
            rf"""[?&;](?:(?i:key|code|sig|signature|appid|auth)|[\w-]{{0,16}}?{_KEY_NAME})=
        (?![^\s&]{{0,200}}%(?:20|0[AaDd]|28))  # code, not a key
        (?P<value>[A-Za-z0-9._~%+/-]{{16,2000}}={{0,2}})""",
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
    (
        "--",
        rf"--[\w-]{{0,30}}?pass(?<!bypass)(?<!compass)(?:w(?:or)?d|wd|phrase)?(?:=|[ ](?!-)){_VALUE}",
        is_hard_password,
    ),
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
    # Programs and settings with the password after a blank.
    (
        "htpasswd net pass: storepass keypass requirepass convertto-securestring",
        rf"""(?:\bhtpasswd[ ]-\w{{0,4}}b\w{{0,4}}[ ]\S{{1,100}}[ ]\S{{1,60}}
        |(?i:\bnet[ ]use[ ])[^\n]{{1,120}}?/user:\S{{1,60}}|[ ]-pass(?:in|out)?(?=[ ]pass:)
        |-\w{{0,4}}(?:store|key)pass|\brequirepass|(?i:convertto-securestring)(?:[ ]-[A-Za-z]{{1,12}}){{0,3}})
        [ ](?:pass:)?{_VALUE}""",
        could_be_literal,
    ),
    (
        "passwd docker sudo helm gh podman",
        r"""\becho[ ](?:-n[ ])?["']?(?:[\w.-]{1,40}:)?
        (?P<value>[^\s"'`|]{4,200})["']?[ ]\|[ ]
        (?:sudo[ ])?(?:passwd|chpasswd|sudo|docker|podman|helm|gh)\b""",
        could_be_literal,
    ),
    # Files and protocols with one setting per line.
    ("login", r"\blogin\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(?P<value>\S{3,200})", could_be_literal),
    (
        "pgpass :5432: :*:",
        r"""(?:(?m:^)[ >]{0,8}|["'])[\w.*-]{1,80}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w.*-]{1,60}:
        (?P<value>[^\s"':]{3,200})(?=["']|[ ]{0,8}(?m:$))""",
        could_be_literal,
    ),
    ("pass", r"(?m:^)[ >]{0,8}PASS[ ](?P<value>\S{4,200})[ ]{0,2}\r?(?m:$)", could_be_literal),
    (
        "334 auth",
        r"""(?:\b334[ ]UGFzc3dvcmQ6\W{1,12}(?:[CS]:[ ])?|\bAUTH(?:ENTICATE)?[ ](?:PLAIN|LOGIN|X?OAUTH\w{1,6})
        [ ])(?P<value>[A-Za-z0-9+/]{8,4000}={0,2})""",
        is_no_word,
    ),
    ("psk", r"""\bpsk[ ]?[=:][ ]?["']?(?P<value>[^\s"']{8,64})""", could_be_literal),
    # Statements and calls.
    (
        "password identified",
        r"""(?:(?i:\b(?:identified[ ]by|password)[ ])'|(?:store|key)Password[ ("']{1,3})
        (?P<value>[^\s'"]{3,200})["']""",
        could_be_literal,
    ),
    ("}</", r"(?i:password|master)>(?P<value>\{[A-Za-z0-9+/]{16,400}={0,2}\})</", is_no_word),  # Maven
    (
        "login( networkcredential( mysqli( getconnection( auth( basicauth( assw",
        r"""(?:(?:\blogin|NetworkCredential|mysqli|getConnection|[aA]uth)
        \((?:["'][^"'\n]{0,200}["'],[ ]{0,2}){1,2}|assw(?:or)?d["'\])]{1,4}\.(?:send_?[kK]eys|fill|setValue)\(
        |assword:?\s?["']?[;,)\s]{1,4}send[ ](?:--[ ])?)["'](?P<value>[^\s"'\\]{4,200})(?:\\[nr])?["']""",
        could_be_literal,
    ),
)


# "password_hash", "passwordField", "password-reset-url" don't have a password as value.
_OTHER_SUFFIX = (
    r"(?![\w-]{0,20}?(?:hash|ref|field|input|prompt|label|hint|len|polic|reset|file|path|ur[il]|min|max|type"
    r"|valid|salt|manage|check|err|col|id|age|expir|rule|form|algo|enc|method|provid|req|stor|chang|forg|env|help"
    r"|messag|strength|gen|prot|less|script))"
)
# Excludes "PASS: some/test" of test runners, "PWD=" (a folder) and "?pwd=" (of a shared folder). A class of
# characters comes first, which is several times faster.
_NAME = rf"""[pP](?i:assw(?:or)?d{_OTHER_SUFFIX}[\w-]{{0,20}}|assphrase
    |(?:ass(?:(?<=[_.]pass)|(?<=(?:db|pg)pass)|(?<=(?:db|pg)-pass)|(?<=(?:ftp|sql)pass)|(?<=(?:ftp|sql)-pass)
        |(?<=(?:smtp|mail|user|root|auth)pass)|(?<=(?:smtp|mail|user|root|auth)-pass)
        |(?<=(?:admin|proxy|redis|login)pass)|(?<=(?:admin|proxy|redis|login)-pass)
        |(?<=accountpass)|(?<=account-pass))|wd(?<=[_.]pwd))(?![A-Za-z])
    |(?:ass(?<![\w/?&$-]pass)|wd(?<![\w/?&$-]pwd))(?=["'\]>]|[ ]?=))"""
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
        *(
            (gates, rf"""{name}{ASSIGNED}{_QUOTED}""", could_be_literal)
            for gates, name in ((_GATES, _NAME), (_LABEL_GATES, _LABEL))
        ),
        # In other languages: a value that ends a line, or has a digit or sign.
        (
            _LABEL_GATES,
            rf"{_LABEL}{ASSIGNED}(?P<value>(?![\"'`\[])[!-~]{{4,200}}){LINE_END}",
            could_be_password,
        ),
        (
            _LABEL_GATES,
            rf"""{_LABEL}(?:{ASSIGNED}|[是为為は][:：]?[ ]?|[ ](?:ist|est|es|é|è|jest):?[ ])
        (?P<value>[^\s"'`,;&)\\:\x80-\U0010ffff]{{4,200}})""",
            is_hard_password,
        ),
        (
            f"{_GATES} {_LABEL_GATES}",
            rf"{_CELL}(?:{_NAME}|{_LABEL}){_NEXT}(?P<value>[^\s|`<*]{{3,200}}){_CELL_END}",
            could_be_password,
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
            r"""(?<![\w$?&])[A-Z0-9_]{0,30}(?:PASS(?:WOR|W)D|PASS(?<!BYPASS)(?<!COMPASS)|PWD)=["']?
        (?P<value>[^\s"'`;]{4,200})""",
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
