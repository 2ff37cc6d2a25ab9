"""Credentials after a name, in a header or in a command: passwords, keys, tokens, cookies."""

from __future__ import annotations

from gis_builder.pairing.secrets.values import shapes

_PARTS = {
    "QUOTE": r"""\\{0,2}["'`]""",
    "GAP": r"[ \t\xa0\u202f\u3000]{0,8}",
    "ASSIGNED": r"""(?:
        (?:\*\*|[\\"'`\])]{0,4}){GAP}
            (?:=>|->|:=|[:：](?:\*\*|__)?|={1,2}|＝|,(?=[ ]?["'`\\])){GAP}(?:\[(?!secret\]))?
            (?:(?:&|static[ ]|const[ ]|[sS]tr(?:ing)?){0,3}[ ]=[ ])?
        |(?:{QUOTE})?[ \t]{0,4}[,{]?\s{0,40}(?:type\s{1,8}=\s{1,8}string\s{1,16})?
            (?:{QUOTE})?(?:value|default)(?:{QUOTE})?[ \t]{0,8}[:=][ \t]{0,8}
        |[ ]\[[\w*]{0,12}\]:[ ]
        |["']?>(?!@)
    )""",
    "LINE_START": r"""(?m:^)[ \t>+|-]{0,20}(?:\d{1,6}[ ]{1,4})?
        (?:(?:export|set|setx|ENV|-e|--env|\$env:)[ ]?)?""",
    "LINE_END": r"(?=[ \t]{0,20}\\?\r?(?m:$))",
    # Whole words, unlike "tokenizer" and "monkey", except keys of tables and caches, public keys, and
    # properties ("token_limit"). Lookbehinds after the word are many times faster than before it.
    "KEY_NAME": r"""
        (?:(?i:secret|token|credential|bearer(?<![a-z]bearer)|[_-]pat|_salt
        |key(?<=[A-Za-z0-9_. -]key)(?<!(?:mon|don|tur|hot|hoc|joc|pub)key)(?<!turnkey)(?<!whiskey)
        (?<!publickey)(?<!public.key)(?<!primarykey)(?<!primary.key)(?<!foreignkey)(?<!foreign.key)
        (?<!cachekey)(?<!cache.key)(?<!partition.key)(?<!sort.key)(?<!index.key))
        (?:(?<=[A-Z])(?:S|ID)?(?![A-Z])|(?<=[a-z])(?:s|id|key|value)?(?![a-z])|(?<=[a-z])SECRET)
        (?![\w-]{0,30}?(?i:name|path|file|folder|director|provider|class|type|count|length|limit|index|size
        |model|manager|prefix|field|column|format|algo|helper|process|hash|digest|usage|fingerp|endpoint
        |ur[il]\b)))
    """,
    "KEY_GATES": "secret token key credential bearer _pat -pat _salt",
    "ASSIGNED_TO_KEY": r"{KEY_NAME}(?:\.base)?[\w-]{0,30}{ASSIGNED}(?:{QUOTE})?",
    "LONG_VALUE": "[A-Za-z0-9+/_~-]{16,2000}={0,2}",
    # Labels in other languages. Names in Latin letters begin a word.
    "LABEL": r"""
        (?i:(?<![^\W_])(?:(?:pass|kenn)wort|mot[ ]de[ ]passe|contrase[ñn]a|clave|senha|palavra[ -]passe
        |parola|has[łl]o|wachtwoord|[şs]ifre(?:niz)?)|密[码碼]|口令|パスワード|暗証番号|비밀번호|비번|암호|парол[ья])
    """,
    "LABEL_GATES": """
        wort mot contrase clave senha palavra parola hasło haslo woord ifre 密码 密碼
        口令 パスワード 暗証番号 비밀번호 비번 암호 парол
    """,
    "KEY_LABEL": r"""
        (?i:токен|ключ|令牌|密[钥鑰]|秘[钥鑰]|トークン|キー|토큰|키|schlüssel|jeton|clé|clave|chave|chiave|klucz|sleutel
        |anahtar)(?:[ ](?:d['’]|d[aeo][ ])?(?i:api|acceso|acesso|accès))?
    """,
    "KEY_LABEL_GATES": """
        токен ключ 令牌 密 秘 トークン キー 토큰 키 schlüssel jeton clé clave chave chiave klucz sleutel
        anahtar
    """,
    "QUOTED": r"""{QUOTE}(?P<value>[^\s"'`\\]{3,200})\\{0,2}["'`](?![ ]?:)""",
    # Cells of tables, but not their heads: "| password | abc |".
    "CELL": r"[|>][ *`]{0,20}[\w. -]{0,30}?",
    "NEXT": r"(?:[ *`]{0,20}\|[ *`]{0,20}|</t[dh]>\s{0,20}<td>)",
    "CELL_END": r"(?=[ *`]{0,20}(?:\|[ ]{0,20}(?!\r?\n[ >]{0,8}\|[ ]?[:-])(?m:$)|</td>))",
    "COOKIES": r"""
        (?:[\w.-]{0,40}?sess(?:ion|data)?(?:_?(?:id|key|token|same_site|data))?|[\w.-]{0,40}sid|ct0
        |cf_clearance|[\w-]{0,20}csrf-?_?token|[\w-]{0,20}AuthCookie|\.AspNet[\w.-]{1,40}
        |wordpress_[\w-]{1,60}|remember_[\w-]{1,60}|(?:__Secure|__Host)-[\w.-]{1,60})
    """,
    "VALUE": r"""["']?(?P<value>[^\s"'`]{4,200})""",
    # "password_hash", "passwordField", "password-reset-url" don't have a password as value.
    "OTHER_SUFFIX": r"""
        (?![\w-]{0,20}?(?:hash|ref|field|input|prompt|label|hint|len|polic|reset|file|path|ur[il]|min|max
        |type|valid|salt|manage|check|err|col|id|age|expir|rule|form|algo|enc|method|provid|req|stor|chang
        |forg|env|help|messag|strength|gen|prot|less|script))
    """,
    # Excludes "PASS: some/test" of test runners, "PWD=" (a folder) and "?pwd=" (of a shared folder). A class
    # of characters comes first, which is several times faster.
    "NAME": r"""
        [pP](?i:assw(?:or)?d{OTHER_SUFFIX}[\w-]{0,20}|assphrase|(?:ass(?:(?<=[_.]pass)|(?<=(?:db|pg)pass)
        |(?<=(?:db|pg)-pass)|(?<=(?:ftp|sql)pass)|(?<=(?:ftp|sql)-pass)|(?<=(?:smtp|mail|user|root
        |auth)pass)|(?<=(?:smtp|mail|user|root|auth)-pass)|(?<=(?:admin|proxy|redis|login)pass)
        |(?<=(?:admin|proxy|redis|login)-pass)|(?<=accountpass)|(?<=account-pass))
        |wd(?<=[_.]pwd))(?![A-Za-z])|(?:ass(?<![\w/?&$-]pass)|wd(?<![\w/?&$-]pwd))(?=["'\]>]|[ ]?=))
    """,
    "GATES": "passw passphrase pwd pass",
    # Part of the pattern, so that a plain word ("was changed to X") doesn't end the search.
    "SIGNED": r"""(?=[^\s"'`]{0,60}[^\sA-Za-z"'`,.;:!?)])""",
}

NAMED = shapes(
    r"""
    authorization
        authorization [is_no_word]
            (?i:authorization){ASSIGNED}["']?(?:[A-Za-z][\w-]{1,20}[ ]{1,4})?
            (?P<value>(?!(?i:bearer|basic|token|digest)\b)[A-Za-z0-9._~+/=-]{12,4000})
        bearer [is_no_word]
            (?i:\bbearer[ \t]{1,4})(?P<value>[A-Za-z0-9._~+/=-]{12,4000})
        response=
            \bresponse="(?P<value>[0-9a-f]{32,64})\"
        -key -token [is_no_word]
            (?i:\b(?:x-)?[\w-]{0,40}?(?:api-?key|subscription-key|(?:auth|access|private
            |vault)-token)){ASSIGNED}
            ["']?(?P<value>[A-Za-z0-9._~+/=-]{8,4000})
    aws
        signature=
            (?:X-Amz-|\b)Signature=(?P<value>[0-9a-f]{64})
    assignment
        ? [looks_random]
            [?&;](?:(?i:key|code|sig|signature|appid|auth)|[\w-]{0,16}?{KEY_NAME})=
            (?![^\s&]{0,200}%(?:20|0[AaDd]|28))  # code, not a key
            (?P<value>[A-Za-z0-9._~%+/-]{16,2000}={0,2})
    cookie
        # In headers, `document.cookie`, flags of curl, cookie jars; session ids anywhere.
        cookie [holds_random]
            (?i:cookies?){ASSIGNED}["']?(?P<value>[\w.$-]{1,80}=[^\n"'\\]{6,8000})
        curl [holds_random]
            [ ](?:-b|--cookie)[ ]["'](?P<value>[\w.$-]{1,80}=[^\n"'\\]{6,8000})
        true false [holds_random]
            (?:TRUE|FALSE)\t\d{1,12}\t[\w.$-]{1,80}\t(?P<value>[^\s]{8,8000})
        sess sid ct0 cf_clearance csrf cookie .aspnet wordpress_ remember_ __secure __host [looks_keyed]
            (?<![\w.-])(?i:{COOKIES}){ASSIGNED}(?:{QUOTE})?
            (?P<value>[A-Za-z0-9%._~@+/-]{20,8000}={0,2})(?![\w(])
    url_password
        ://
            ://[^\s/@:"'<>\[\]]{0,100}:(?P<value>(?!\[secret\]|[${<%])[^\s/@"'<>]{1,200})(?=@[A-Za-z0-9\[])
        :// [looks_random]
            ://(?P<value>[A-Za-z0-9_-]{16,200})(?:@|:@)(?=[A-Za-z0-9\[])
    password
        {GATES} [could_be_literal]
            {NAME}{ASSIGNED}{QUOTED}
        {LABEL_GATES} [could_be_literal]
            {LABEL}{ASSIGNED}{QUOTED}
        # In other languages: a value that ends a line, or has a digit or sign.
        {LABEL_GATES} [could_be_password]
            {LABEL}{ASSIGNED}(?P<value>(?![\"'`\[])[!-~]{4,200}){LINE_END}
        {LABEL_GATES} [is_hard_password]
            {LABEL}(?:{ASSIGNED}|[是为為は][:：]?[ ]?|[ ](?:ist|est|es|é|è|jest):?[ ])
            (?P<value>[^\s"'`,;&)\\:\x80-\U0010ffff]{4,200})
        {GATES} {LABEL_GATES} [could_be_password]
            {CELL}(?:{NAME}|{LABEL}){NEXT}(?P<value>[^\s|`<*]{3,200}){CELL_END}
        # On a line of a settings file.
        {GATES} [could_be_password]
            {LINE_START}[\w.-]{0,60}?{NAME}[ \t]{0,8}[:=][ \t]{0,8}
            (?P<value>[^\s"'`:][^\s"'`]{3,200})
            {LINE_END}
        pass: pw: pwd: [is_hard_password]
            {LINE_START}(?:[Pp]ass|[Pp]w|PW|[Pp]wd):[ ](?P<value>\S{4,200})
        # Within a line.
        {GATES} [is_hard_password]
            {NAME}{ASSIGNED}(?P<value>[^\s"'`,;&)\\:][^\s"'`,;&)\\]{3,200})
        # In a connection string.
        password= pwd= [could_be_password]
            (?i:[;?&](?:password|pwd)=)(?P<value>[^\s;"'&]{3,200})(?=[;&"'])
        # In environment variables of a command.
        pass pwd [could_be_password]
            (?<![\w$?&])[A-Z0-9_]{0,30}(?:PASS(?:WOR|W)D|PASS(?<!BYPASS)(?<!COMPASS)|PWD)=["']?
            (?P<value>[^\s"'`;]{4,200})
        </ [could_be_literal]
            {NAME}>(?P<value>[^<\s]{3,200})(?=</)
        # In prose.
        password passphrase pw [is_hard_password]
            \b(?i:password|passphrase|pw|login)(?:[ ][a-z]{1,12}){0,5}?
            [ ](?:is|was|to|as|with)(?:[ ]now)?[: ]{1,2}["'`]?(?P<value>{SIGNED}[^\s"'`]{4,200})
        password [is_hard_password]
            (?i:\buser(?:name)?)[ :=]{1,2}\S{1,40}[ ,;/]{1,3}(?:and[ ])?password[ :=]{1,2}["'`]?
            (?P<value>[^\s"'`]{4,200})
        log login credential [is_hard_password]
            (?i:\blog[ ]?in[ ](?:with|as|using)|credentials(?:[ ](?:are|is|were))?)[:*]{0,3}[ ]
            [`"']?[\w.@-]{1,40}[`"']?[ ]?[:/][ ]?[`"']?(?P<value>[^\s"'`]{4,200})
        password | [is_hard_password]
            (?i:password)[ ]{0,20}\|\r?\n\|[-:| ]{3,80}\|\r?\n\|[^|\n]{1,60}\|[ ]
            (?P<value>[^\s|]{4,200})[ ]{1,20}\|
        # Hashed, as in shadow and htpasswd files.
        $
            \$(?:2[abxy]\$\d\d\$[\w./]{50,60}|(?:apr1|[156])\$[\w./]{1,16}\$[\w./]{20,90}
            |y\$[\w./]{1,9}\$[\w./]{10,90}\$[\w./]{40,60}
            |argon2\w{1,2}\$[\w./$,=+-]{40,200})
    password
        -- [is_hard_password]
            --[\w-]{0,30}?pass(?<!bypass)(?<!compass)(?:w(?:or)?d|wd|phrase)?(?:=|[ ](?!-)){VALUE}
        # Programs with a short flag for the password.
        sshpass mysql mariadb mongo sqlcmd ldap docker podman helm redis-cli isql [could_be_literal]
            \b(?:sshpass|mysql\w{0,12}|mariadb[\w-]{0,12}|mongo\w{0,12}|sqlcmd
            |isql|ldap\w{1,12}|redis-cli
            |(?:docker|podman|helm)[ ](?:registry[ ])?login)[ ](?:[^\n]{0,200}?[ ])?-[pPwa][ ]?{VALUE}
        curl [could_be_password]
            \bcurl[ ][^\n]{0,200}?(?:-u|--user)[ =]?["']?[\w.@+-]{1,80}:(?P<value>[^\s"']{3,200})
        http [is_hard_password]
            [ ](?:-u|--user|-a|--auth)[ =]?["']?[\w.@+-]{1,80}:(?P<value>[^\s"'@]{3,200})
        # Programs and settings with the password after a blank.
        htpasswd net pass: storepass keypass requirepass convertto-securestring [could_be_literal]
            (?:\bhtpasswd[ ]-\w{0,4}b\w{0,4}[ ]\S{1,100}[ ]\S{1,60}
            |(?i:\bnet[ ]use[ ])[^\n]{1,120}?/user:\S{1,60}|[ ]-pass(?:in|out)?(?=[ ]pass:)
            |-\w{0,4}(?:store|key)pass|\brequirepass|(?i:convertto-securestring)(?:[ ]-[A-Za-z]{1,12}){0,3})
            [ ](?:pass:)?{VALUE}
        passwd docker sudo helm gh podman [could_be_literal]
            \becho[ ](?:-n[ ])?["']?(?:[\w.-]{1,40}:)?
            (?P<value>[^\s"'`|]{4,200})["']?[ ]\|[ ]
            (?:sudo[ ])?(?:passwd|chpasswd|sudo|docker|podman|helm|gh)\b
        # Files and protocols with one setting per line.
        login [could_be_literal]
            \blogin\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(?P<value>\S{3,200})
        pgpass :5432: :*: [could_be_literal]
            (?:(?m:^)[ >]{0,8}|["'])[\w.*-]{1,80}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w.*-]{1,60}:
            (?P<value>[^\s"':]{3,200})(?=["']|[ ]{0,8}(?m:$))
        pass [could_be_literal]
            (?m:^)[ >]{0,8}PASS[ ](?P<value>\S{4,200})[ ]{0,2}\r?(?m:$)
        334 auth [is_no_word]
            (?:\b334[ ]UGFzc3dvcmQ6\W{1,12}(?:[CS]:[ ])?|\bAUTH(?:ENTICATE)?[ ](?:PLAIN|LOGIN|X?OAUTH\w{1,6})
            [ ])(?P<value>[A-Za-z0-9+/]{8,4000}={0,2})
        psk [could_be_literal]
            \bpsk[ ]?[=:][ ]?["']?(?P<value>[^\s"']{8,64})
        # Statements and calls.
        password identified [could_be_literal]
            (?:(?i:\b(?:identified[ ]by|password)[ ])'|(?:store|key)Password[ ("']{1,3})
            (?P<value>[^\s'"]{3,200})["']
        # Maven
        }</ [is_no_word]
            (?i:password|master)>(?P<value>\{[A-Za-z0-9+/]{16,400}={0,2}\})</
        login( networkcredential( mysqli( getconnection( auth( basicauth( assw [could_be_literal]
            (?:(?:\blogin|NetworkCredential|mysqli|getConnection|[aA]uth)
            \((?:["'][^"'\n]{0,200}["'],[ ]{0,2}){1,2}|assw(?:or)?d["'\])]{1,4}\.(?:send_?[kK]eys|fill
            |setValue)\(
            |assword:?\s?["']?[;,)\s]{1,4}send[ ](?:--[ ])?)["'](?P<value>[^\s"'\\]{4,200})(?:\\[nr])?["']
    aws
        secret session [looks_keyed]
            (?i:aws[_. -]?(?:secret[_. -]?(?:access[_. -]?)?key|session[_. -]?token)
            |secret[_. -]?access[_. -]?key|session[_. -]?token)(?:{ASSIGNED}|[ \t]{1,4})(?:{QUOTE})?
            (?P<value>[A-Za-z0-9/+]{30,2000}={0,2})
    assignment
        {KEY_LABEL_GATES} [looks_random]
            {KEY_LABEL}{ASSIGNED}(?:{QUOTE})?(?P<value>{LONG_VALUE})
        {KEY_GATES} [looks_random]
            {CELL}{KEY_NAME}{NEXT}(?P<value>{LONG_VALUE}){CELL_END}
        # With signs, as in Django's settings.
        secret [looks_random]
            (?i:secret)[\w-]{0,30}{ASSIGNED}{QUOTE}
            (?P<value>(?!\w{2,9}://|[${]{2}|<)[^\s"'`\\]{24,200})["'`]
        {KEY_GATES} [looks_random]
            {ASSIGNED_TO_KEY}(?:0x|base64:|\w{1,12}:)?
            (?P<value>{LONG_VALUE})(?![A-Za-z0-9+/_~.(:-])
        # Values with several parts: "id.secret", "1/123:secret".
        {KEY_GATES} [looks_mixed_or_long]
            {ASSIGNED_TO_KEY}
            (?P<value>[\w+/~=-]{1,80}(?:[.:|{]{1,2}[\w+/~=-]{6,400}){1,6})
            (?![\w(])
        # The value of a flag.
        -- [looks_random]
            --[\w-]{0,40}?{KEY_NAME}[ ]["']?(?P<value>[\w+/~.-]{16,2000}={0,2})
        # `key` alone: only values that no one types.
        key [looks_mixed]
            \b(?i:key)["']?[ ]?[:=][ ]?["']?(?P<value>[A-Za-z0-9+/]{32,100}={0,2})
        login( [looks_keyed]
            \blogin\([^()\n]{0,60}?\bkey=["'](?P<value>[\w-]{20,255})["']
        # A short value that is alone on a line of an environment file.
        {KEY_GATES} [is_hard_password]
            {LINE_START}[A-Z0-9_]{0,40}?{KEY_NAME}(?<=[A-Z])[A-Z0-9_]{0,20}=
            (?P<value>[^\s"'`]{8,200}){LINE_END}
        define( [looks_mixed]
            define\(\s?'[A-Z_]{3,30}',\s{0,8}'(?P<value>[^'\n]{40,100})'
        phrase mnemonic
            (?i:(?:seed|recovery|secret)[ ](?:phrase|words)|mnemonic)["']?[ ]?[:=]?[ ]?["']?
            (?P<value>(?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8})
    """,
    _PARTS,
)
