"""Invented issue texts with a planted credential each, and with look-alikes that a scrubber must leave.

Held-out material: it was written from what issuers document about their keys and from what people paste
into bug reports, without a look at the scrubber that it tests. Every body is drawn at random, so nothing here is a key.

A shape is written as literal text with classes of characters in it, such as `<w36>` or `<h8-12>` (see
`CLASSES`), so no key stands in this source. Where brackets enclose a part, as in `https://host/(<u24>)`, that part
is the secret: the last one that gives access, so that a scrubber which stops half-way is found out.

    python benchmarks/planted_secrets.py [kind or name]  # shows examples
"""

# Tables of texts and shapes are read by the row.
# ruff: noqa: E501, SIM905

from __future__ import annotations

import base64
import json
import random
import re
import string
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LOOK_ALIKE = "none"


@dataclass(frozen=True)
class Planted:
    """An issue text with one planted string."""

    kind: str
    name: str
    secret: str
    text: str


# ---- Bodies -------------------------------------------------------------------------------------------

UPPER, LOWER, DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
ALNUM = DIGITS + UPPER + LOWER
CLASSES = {
    "w": ALNUM,
    "k": UPPER + LOWER,
    "A": UPPER,
    "a": LOWER,
    "d": DIGITS,
    "l": LOWER + DIGITS,
    "U": UPPER + DIGITS,
    "h": DIGITS + "abcdef",
    "H": DIGITS + "ABCDEF",
    "t": UPPER + "234567",
    "z": LOWER + "234567",
    "b": ALNUM + "+/",
    "u": ALNUM + "-_",
}
CLASS = re.compile(r"<([a-zA-Z])(\d+)(?:-(\d+))?>")


class Dice(random.Random):
    """A seeded source of bodies."""

    def of(self, alphabet: str, low: int, high: int = 0) -> str:
        """So many characters of the alphabet, between `low` and `high`."""
        return "".join(self.choices(alphabet, k=self.randint(low, max(low, high))))

    def fill(self, shape: str) -> str:
        """The shape with each class of characters drawn."""
        return CLASS.sub(lambda m: self.of(CLASSES[m[1]], int(m[2]), int(m[3] or 0)), shape)

    def weighted(self, choices: dict[str, int]) -> str:
        """One of the keys, in proportion to its value."""
        return self.choices(list(choices), weights=list(choices.values()))[0]


# What stands in the text, and the part of it that is the secret.
Body = tuple[str, str]
Shape = str | Callable[[Dice], Body]


def draw(dice: Dice, shape: Shape) -> Body:
    """A body of the shape."""
    if not isinstance(shape, str):
        return shape(dice)
    before, bracket, rest = dice.fill(shape).partition("(")
    if not bracket:
        return before, before
    secret, _, after = rest.partition(")")
    return before + secret + after, secret


def one_of(*shapes: str) -> Callable[[Dice], Body]:
    """Any of the shapes, with equal chance."""
    return lambda dice: draw(dice, dice.choice(shapes))


def base62(number: int, width: int) -> str:
    """The number in base 62, as GitHub and npm write their checksum."""
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = ALNUM[rest] + digits
    return digits.rjust(width, "0")


def checked(prefix: str) -> Callable[[Dice], Body]:
    """30 random characters and the base-62 CRC32 of them, as in tokens of GitHub and npm."""

    def body(dice: Dice) -> Body:
        middle = dice.of(ALNUM, 30)
        token = prefix + middle + base62(zlib.crc32(middle.encode()), 6)
        return token, token

    return body


def url64(data: bytes) -> str:
    """Base64 for URLs without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def compact(value: object) -> bytes:
    """The value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def jwt(dice: Dice) -> Body:
    """A signed JSON web token; the secret is its signature."""
    size = {"HS256": 32, "HS512": 64, "ES256": 64, "EdDSA": 64, "RS256": 256}
    algorithm = dice.weighted({"HS256": 50, "RS256": 35, "ES256": 8, "HS512": 4, "EdDSA": 3})
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if algorithm != "HS256":
        head["kid"] = dice.fill("<h16>")
    issued = dice.randint(1_550_000_000, 1_760_000_000)
    claims: dict[str, object] = {"sub": dice.fill("<d4-10>"), "iat": issued, "exp": issued + 3600}
    claims |= dice.choice(
        [
            {"role": "service_role", "iss": "supabase"},
            {"name": "Ada Fenwick", "admin": True},
            {"aud": "api://orders", "scope": "read write"},
            {},
        ]
    )
    signature = url64(dice.randbytes(size[algorithm]))
    return f"{url64(compact(head))}.{url64(compact(claims))}.{signature}", signature


def jwe(dice: Dice) -> Body:
    """An encrypted JSON web token, five parts."""
    head = url64(compact({"alg": "dir", "enc": "A256GCM"}))
    cipher = url64(dice.randbytes(180))
    return f"{head}..{url64(dice.randbytes(12))}.{cipher}.{url64(dice.randbytes(16))}", cipher


def wrapped(dice: Dice, start: bytes, size: int, width: int) -> tuple[str, str]:
    """Base64 lines of random bytes after the given start, and one of the inner lines."""
    encoded = base64.b64encode(start + dice.randbytes(size)).decode()
    lines = [encoded[i : i + width] for i in range(0, len(encoded), width)]
    return "\n".join(lines), dice.choice(lines[1:-1] or lines[:1])


def pem(label: str, start: bytes, size: int, width: int = 64, head: str = "") -> Callable[[Dice], Body]:
    """A PEM block; the secret is one of its inner lines."""

    def body(dice: Dice) -> Body:
        lines, secret = wrapped(dice, start, size + dice.randint(0, 3), width)
        return f"-----BEGIN {label}-----\n{dice.fill(head)}{lines}\n-----END {label}-----", secret

    return body


def escaped(shape: Callable[[Dice], Body]) -> Callable[[Dice], Body]:
    r"""The block on one line with `\n` for each line break, as JSON and .env files hold it."""

    def body(dice: Dice) -> Body:
        shown, secret = shape(dice)
        return shown.replace("\n", "\\n") + "\\n", secret

    return body


def encoded(shape: Callable[[Dice], Body]) -> Callable[[Dice], Body]:
    """The block in base64 once more, as kubeconfig files and CI variables hold it."""

    def body(dice: Dice) -> Body:
        whole = base64.b64encode(shape(dice)[0].encode() + b"\n").decode()
        return whole, whole

    return body


def putty(dice: Dice) -> Body:
    """A PuTTY key file; the secret is a line of its private part."""
    public, _ = wrapped(dice, b"\0\0\0\x07ssh-rsa", 270, 64)
    private, secret = wrapped(dice, b"\0\0\1\0", 600, 64)
    return (
        "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nComment: rsa-key-20240311\n"
        f"Public-Lines: {len(public.splitlines())}\n{public}\n"
        f"Private-Lines: {len(private.splitlines())}\n{private}\nPrivate-MAC: {dice.fill('<h64>')}",
        secret,
    )


RSA = pem("RSA PRIVATE KEY", b"\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01\x00", 1180)
PKCS8 = pem("PRIVATE KEY", b"\x30\x82\x04\xbd\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48", 1200)
EC = pem("EC PRIVATE KEY", b"\x30\x77\x02\x01\x01\x04\x20", 114)
OPENSSH = pem("OPENSSH PRIVATE KEY", b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none", 350, 70)
LOCKED = pem(
    "RSA PRIVATE KEY",
    b"",
    1190,
    head="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,<H32>\n\n",
)
PGP = pem("PGP PRIVATE KEY BLOCK", b"\x95\x05\x86\x04", 1400, head="\n")


def mnemonic(dice: Dice) -> Body:
    """Twelve words that give back a wallet (BIP 39 words)."""
    words = (
        "abandon ability acid anchor april arrow badge banner barely beach blossom bracket cabin canvas cedar "
        "chimney cliff copper cradle crisp dawn desert dolphin eager ember fabric fatigue garlic glimpse gospel "
        "harvest hazard hybrid icon inmate jaguar kidney lantern lizard maple mushroom nephew oyster pelican "
        "quantum raccoon saddle tobacco umbrella velvet walnut zebra"
    ).split()
    phrase = " ".join(dice.sample(words, 12))
    return phrase, phrase


def basic(dice: Dice) -> Body:
    """User and password in base64."""
    value = base64.b64encode(f"{dice.choice(USERS)}:{password(dice)[0]}".encode()).decode()
    return value, value


WORDS = (
    "sunshine dragon monkey football shadow master princess welcome charlie freedom whatever banana cookie pepper "
    "summer winter autumn spring tiger ginger hammer silver orange purple soccer hockey ranger jordan buster thunder "
    "falcon phoenix matrix batman liverpool chelsea arsenal sparky coffee pirate wizard rocket guitar marina "
    "turtle pumpkin hunter trustno letmein qwerty iloveyou mustang corvette merlin diamond yankees"
).split()
WORDS_LATE = "mercury saturn walrus otter badger heron lobster granite marble velvet copper bamboo saffron cinnamon".split()
SIGNS = "!@#$%^*-_+.?~"


def chosen(dice: Dice) -> Body:
    """A password as people choose it: words with digits and signs, or leet."""
    word, other = dice.sample(WORDS + WORDS_LATE, 2)
    year, sign = dice.randint(1970, 2026), dice.choice("!@#$%*_.?-")
    swapped = word.translate(str.maketrans("aeiost", "@310$7"))
    value = dice.choice(
        [
            f"{word}{dice.randint(1, 999)}",
            f"{word.title()}{year}",
            f"{word.title()}{year}{sign}",
            f"{word.title()}{sign}{dice.randint(1, 9999)}",
            f"{word}{sign}{other}",
            f"{word.title()}{other.title()}{dice.randint(1, 99)}",
            f"P{swapped}{dice.randint(10, 99)}",
            f"{swapped[:1].upper() if swapped[:1].isalpha() else 'x'}{swapped[1:]}{sign}{dice.randint(1, 999)}",
            f"{word}-{other}-{dice.choice(WORDS_LATE)}-{dice.randint(1, 99)}",
            f"{word}_{other}_{year}",
            f"{dice.of(LOWER, 2)}{dice.of(DIGITS, 4, 6)}{dice.of(LOWER, 2)}",
            f"qwe{dice.of(DIGITS, 3)}ASD{sign}",
        ]
    )
    return value, value


def random_password(dice: Dice) -> Body:
    """12 to 24 random characters as a password manager makes them, with or without signs."""
    alphabet = dice.choice([ALNUM, ALNUM, ALNUM + SIGNS])
    value = dice.of(ALNUM, 1) + dice.of(alphabet, 11, 23)
    return value, value


def plain_word(dice: Dice) -> Body:
    """A dictionary word alone."""
    value = dice.choice(WORDS + WORDS_LATE)
    return value, value


def password(dice: Dice) -> Body:
    """Half chosen by people, half by a machine."""
    return dice.choice([chosen, random_password])(dice)


def env_password(dice: Dice) -> Body:
    """As `password`, with plain words among them, which only a name such as PASSWORD gives away."""
    return dice.choices([chosen, random_password, plain_word], weights=[45, 35, 20])[0](dice)


def url_password(dice: Dice) -> Body:
    """A password that stands in a URL: signs are percent-encoded, or do no harm."""
    if dice.random() < 0.15:
        value = (
            f"{dice.choice(WORDS).title()}{dice.choice(['%40', '%23', '%21', '%2F'])}{dice.of(ALNUM, 3, 8)}"
        )
        return value, value
    value = re.sub(r"[@#?%/^]", lambda _: dice.choice("!-_.~$*"), env_password(dice)[0])
    return value, value


def at_password(dice: Dice) -> Body:
    """A password with a raw `@` in it, which people write into URLs all the same."""
    value = f"{dice.choice(WORDS).title()}@{dice.of(ALNUM, 3, 8)}"
    return value, value


def encoded_password(dice: Dice) -> Body:
    """A password in base64, as Kubernetes holds it under `data`."""
    value = base64.b64encode(password(dice)[0].encode()).decode()
    return value, value


def passphrase(dice: Dice) -> Body:
    """Four words with spaces or hyphens."""
    value = dice.choice([" ", "-", "."]).join(dice.sample(WORDS_LATE, 4))
    return value, value


def dotted_address(dice: Dice) -> Body:
    """An e-mail address of nobody."""
    first = dice.choice(
        "mara jonas ilse tobias priya kenji oksana luca noor hamid greta pawel yusuf ines".split()
    )
    last = dice.choice(
        "holmqvist ferrandez okonkwo tanabe lindqvist marchetti brandtner wolanski desrosiers".split()
    )
    local = dice.choice(
        [
            f"{first}.{last}",
            f"{first}{dice.randint(1, 99)}",
            f"{first[0]}{last}",
            f"{first}_{last}",
            f"{first}+bugs",
            f"{first.title()}.{last.title()}",
            f"{last}-{first[0]}",
        ]
    )
    domain = dice.weighted(
        {
            "gmail.com": 30,
            "northwharf-labs.io": 12,
            "mail.brightmoor.co.uk": 8,
            "tillberg-systems.se": 8,
            "cs.uni-altstadt.de": 8,
            "outlook.com": 8,
            "protonmail.com": 6,
            "qq.com": 5,
            "kestrel.dev": 5,
            "ops.hollowpine.net": 5,
            "yandex.ru": 3,
            "sub.dept.vandermolen.museum": 2,
        }
    )
    value = f"{local}@{domain}"
    return value, value


def number_address(dice: Dice) -> Body:
    """An address of digits, as is common at some providers."""
    value = dice.fill("<d8-10>") + "@" + dice.choice(["qq.com", "163.com", "naver.com"])
    return value, value


# ---- Carriers -----------------------------------------------------------------------------------------
# The first line of a carrier is the language of its code block ("-" for prose). ‹s› stands for the credential,
# ‹KEY›, ‹key›, ‹camel›, ‹Pascal›, ‹kebab› and ‹dotted› for the name it is given to, the other slots for words of SLOTS.

USERS = "admin root postgres deploy svc-build jenkins mkessler app_user backup sa grafana ci-bot".split()
SLOTS: dict[str, Sequence[str]] = {
    "user": USERS,
    "person": "mkessler tobiasw rhea.lund dkowalski yuki ana-p".split(),
    "host": "db.internal 10.0.3.17 pg-primary.prod.svc localhost 192.168.1.40 stage-2.kestrel.dev nas.local".split(),
    "site": "api.kestrel.dev gateway.hollowpine.net orders.stage.brightmoor.io 127.0.0.1:8080".split(),
    "db": "orders inventory app_production wiki telemetry keycloak".split(),
    "app": "ledgerd pixmill tidepool-worker marlin quillboard hexporter sync-agent".split(),
    "path": "/opt/app/conf /etc/marlin /home/deploy/app C:\\apps\\marlin ~/src/quillboard".split(),
    "time": (
        "2024-03-11T08:14:55.219Z",
        "2025-10-02 17:40:03,118",
        "Nov 14 23:01:09",
        "2023-07-19T12:00:31+02:00",
    ),
    "level": "info debug warn INFO DEBUG".split(),
    "version": "1.4.0 2.11.3 0.9.27 5.0.0-rc.2 3.7.1 22.04".split(),
    "number": "3 17 42 128 404 1500 8192".split(),
}

ASSIGNED = [
    "env\nAPP_ENV=production\n‹KEY›=‹s›\nLOG_LEVEL=‹level›",
    "env\n# .env.local\nPORT=3000\n‹KEY›=‹s›\nNODE_ENV=development\n",
    'env\nHOST=‹host›\n‹KEY›="‹s›"\nTZ=Europe/Oslo',
    "bash\nexport ‹KEY›=‹s›\n./bin/‹app› --verbose",
    "bash\n$ export ‹KEY›='‹s›'\n$ make deploy\nmake: *** [deploy] Error 1",
    "bash\n‹KEY›=‹s› python -m ‹app› sync --all",
    "yaml\n‹app›:\n  host: ‹host›\n  ‹key›: ‹s›\n  retries: ‹number›",
    'yaml\nserver:\n  ‹kebab›: "‹s›"\n  timeout: 30s',
    "yaml\nspring:\n  cloud:\n    ‹camel›: '‹s›'",
    'toml\n[‹app›]\nlisten = "0.0.0.0:8080"\n‹key› = "‹s›"',
    'json\n{\n  "endpoint": "https://‹site›",\n  "‹camel›": "‹s›",\n  "retries": ‹number›\n}',
    'json\n{"‹key›":"‹s›","region":"eu-west-1","debug":true}',
    '\n‹time› ‹level› [‹app›] request body: "{\\"‹key›\\":\\"‹s›\\",\\"dryRun\\":false}"',
    '\n{"level":"error","ts":"‹time›","msg":"reload failed","config":"{\\"name\\":\\"‹app›\\",\\"‹camel›\\":\\"‹s›\\"}"}',
    "xml\n<configuration>\n  <endpoint>https://‹site›</endpoint>\n  <‹camel›>‹s›</‹camel›>\n</configuration>",
    'xml\n<appSettings>\n  <add key="Region" value="north" />\n  <add key="‹Pascal›" value="‹s›" />\n</appSettings>',
    "ini\n[‹app›]\nuser = ‹user›\n‹key› = ‹s›\nkeepalive = yes",
    "properties\n‹app›.url=https://‹site›\n‹app›.‹dotted›=‹s›\n‹app›.pool.size=10",
    'python\nimport os\n\n‹KEY› = "‹s›"\n\nclient = Client(timeout=‹number›)\nclient.sync()',
    "python\nfrom ‹app›_sdk import Client\n\nclient = Client(‹key›='‹s›', region=\"eu\")\nprint(client.list())",
    'python\nos.environ["‹KEY›"] = "‹s›"\nrun(debug=True)',
    'js\nconst client = new Client({\n  ‹camel›: "‹s›",\n  baseUrl: "https://‹site›",\n});\nawait client.ping();',
    "ts\nconst ‹camel› = '‹s›';\nexport default createApp({ retries: ‹number› });",
    'js\nprocess.env.‹KEY› = "‹s›";\nrequire("./server");',
    'go\ncfg := marlin.Config{\n\tAddr: ":8080",\n\t‹Pascal›: "‹s›",\n}\nif err := marlin.Run(cfg); err != nil {\n\tlog.Fatal(err)\n}',
    'rust\nconst ‹KEY›: &str = "‹s›";\n\nfn main() {\n    let client = Client::new(‹KEY›).unwrap();\n}',
    'java\npublic class Repro {\n    private static final String ‹KEY› = "‹s›";\n\n    public static void main(String[] args) throws Exception {\n        new Client(‹KEY›).run();\n    }\n}',
    'csharp\nvar options = new ClientOptions\n{\n    ‹Pascal› = "‹s›",\n    MaxRetries = ‹number›,\n};',
    "php\n<?php\nreturn [\n    'debug' => true,\n    '‹key›' => '‹s›',\n];",
    "php\ndefine('‹KEY›', '‹s›');\ndefine('WP_DEBUG', true);",
    "ruby\nMarlin.configure do |c|\n  c.‹key› = '‹s›'\n  c.timeout = ‹number›\nend",
    'ruby\nENV["‹KEY›"] = "‹s›"',
    'kotlin\nval client = MarlinClient(\n    ‹camel› = "‹s›",\n    retries = ‹number›,\n)',
    'swift\nlet ‹camel› = "‹s›"\nlet session = Session(host: "‹site›")',
    "bash\ndocker run -d --name ‹app› -p 8080:8080 -e ‹KEY›=‹s› -e TZ=UTC registry.kestrel.dev/‹app›:‹version›",
    'bash\ndocker run --rm -it \\\n  --env "‹KEY›=‹s›" \\\n  -v "$PWD:/work" ‹app›:latest',
    "yaml\nservices:\n  ‹app›:\n    image: ‹app›:‹version›\n    environment:\n      - ‹KEY›=‹s›\n      - TZ=UTC\n    ports:\n      - 8080:8080",
    "yaml\nversion: '3.8'\nservices:\n  web:\n    image: ‹app›:‹version›\n    environment:\n      ‹KEY›: ‹s›\n      DEBUG: 'true'",
    "yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: ‹app›\ntype: Opaque\nstringData:\n  ‹kebab›: ‹s›",
    'yaml\n    spec:\n      containers:\n        - name: ‹app›\n          env:\n            - name: ‹KEY›\n              value: "‹s›"\n            - name: LOG_LEVEL\n              value: debug',
    "\nRun ./scripts/release.sh\n  shell: /usr/bin/bash -e {0}\n  env:\n    CI: true\n    ‹KEY›: ‹s›\nError: Process completed with exit code 1.",
    "\n2024-05-21T09:31:02.1180032Z ##[group]Run npm publish\n2024-05-21T09:31:02.1184011Z env:\n2024-05-21T09:31:02.1184377Z   ‹KEY›: ‹s›\n2024-05-21T09:31:02.1184802Z ##[endgroup]",
    'hcl\nprovider "‹app›" {\n  endpoint = "https://‹site›"\n  ‹key›    = "‹s›"\n}',
    'hcl\nvariable "‹key›" {\n  type    = string\n  default = "‹s›"\n}',
    "dockerfile\nFROM node:20-alpine\nWORKDIR /app\nENV ‹KEY›=‹s›\nRUN npm ci",
    'powershell\n$env:‹KEY› = "‹s›"\n.\\marlin.exe --config .\\app.json',
    "bat\nset ‹KEY›=‹s›\ncall build.cmd",
    "\n  981  cd ‹path›\n  982  export ‹KEY›=‹s›\n  983  systemctl restart ‹app›\n  984  history",
    "bash\nhelm upgrade --install ‹app› ./chart \\\n  --set image.tag=‹version› \\\n  --set config.‹camel›=‹s›",
    "bash\n‹app› login --‹kebab› ‹s› --region eu\nError: unexpected end of JSON input",
    "bash\n./‹app› serve --‹kebab›=‹s› --listen :9000",
    "\n[Service]\nUser=‹app›\nEnvironment=‹KEY›=‹s›\nExecStart=/usr/bin/‹app› serve",
    "\n‹time› ‹level› loaded settings: {'debug': True, '‹key›': '‹s›', 'workers': ‹number›}",
    "\n‹time› DEBUG Config(host=‹host›, ‹camel›=‹s›, timeout=30)",
    "diff\n--- a/config.yml\n+++ b/config.yml\n@@ -1,4 +1,4 @@\n app: ‹app›\n-‹key›: ‹s›\n+‹key›: ${‹KEY›}\n debug: false",
    "nix\nservices.‹app› = {\n  enable = true;\n  settings.‹camel› = \"‹s›\";\n};",
    "lua\nlocal opts = {\n  ‹key› = \"‹s›\",\n  port = 8080,\n}",
]  # fmt: skip

# For credentials that bear a mark: they are also pasted with no name beside them.
BARE = [
    "-\nI used ‹s› for this (will revoke it later), and it still fails with the same error.",
    "-\nThe token is `‹s›`, it worked until version ‹version›.",
    "-\nSteps: log in, create a key (mine is ‹s›) and start the sync.",
    "bash\ncurl -sS -H 'Authorization: Bearer ‹s›' https://‹site›/v1/me\n{\"message\":\"Not Found\"}",
    'bash\ncurl -X POST "https://‹site›/api/run" \\\n  -H "Content-Type: application/json" \\\n  -H "Authorization: Bearer ‹s›" \\\n  -d \'{"id": ‹number›}\'',
    "\n‹time› DEBUG urllib3.connectionpool: https://‹site›:443 \"GET /v1/items?token=‹s› HTTP/1.1\" 401 None",
    "\n‹time› ERROR [‹app›] unauthorized: key ‹s› rejected by upstream (status=403)",
    "\nGET /v2/items HTTP/1.1\nHost: ‹site›\nUser-Agent: ‹app›/‹version›\nAuthorization: Bearer ‹s›\nAccept: */*",
    "bash\nwget --header=\"Authorization: token ‹s›\" https://‹site›/archive.tar.gz",
    "bash\n$ echo ‹s› | ‹app› login --with-token\nerror validating token: HTTP 401",
    'python\nheaders = {"Authorization": f"Bearer ‹s›"}\nr = requests.get("https://‹site›/items", headers=headers)\nr.raise_for_status()',
    'js\nconst res = await fetch("https://‹site›/v1/items", {\n  headers: { Authorization: "Bearer ‹s›" },\n});',
    "\nTraceback (most recent call last):\n  File \"/srv/‹app›/main.py\", line ‹number›, in <module>\n    client.check(\"‹s›\")\nValueError: response was not JSON",
    "\n  412  cd ‹path›\n  413  ‹app› auth ‹s›\n  414  ‹app› sync",
    "-\n> what key did you use?\n\n‹s›\n\nThat is the one from the dashboard.",
]  # fmt: skip
MARKED = [*ASSIGNED, *BARE, *BARE]

BLOCK = [
    "\n‹s›",
    "\n$ cat ~/.ssh/deploy_key\n‹s›\n$ ssh -i ~/.ssh/deploy_key ‹user›@‹host›\nLoad key: error in libcrypto",
    "yaml\ntls:\n  enabled: true\n  key: |\n    ‹s›\n  port: 8443",
    "yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: ‹app›-tls\nstringData:\n  tls.key: |\n    ‹s›",
    'python\nKEY = """‹s›\n"""\nload_key(KEY)',
    'go\nconst testKey = `‹s›`\n\nfunc TestLoad(t *testing.T) {\n\t_, err := Parse([]byte(testKey))\n}',
    "hcl\nresource \"tls\" \"‹app›\" {\n  key = <<-EOT\n    ‹s›\n  EOT\n}",
    "-\nHere is the key that fails to parse (a throw-away one):\n\n‹s›\n\nThe same file loads in ‹version›.",
    "php\n$key = <<<EOD\n‹s›\nEOD;\nopenssl_pkey_get_private($key);",
    "\n‹time› DEBUG ssh: trying key\n‹s›\n‹time› ERROR ssh: no supported methods remain",
]  # fmt: skip
ONE_LINE = [
    'json\n{\n  "type": "service_account",\n  "project_id": "marlin-‹number›",\n  "private_key": "‹s›",\n  "token_uri": "https://oauth2.googleapis.com/token"\n}',
    'env\nNODE_ENV=production\nPRIVATE_KEY="‹s›"\nPORT=3000',
    'js\nconst key = "‹s›";\nconst signed = sign(payload, key);',
    '\n‹time› ‹level› [‹app›] config: {"name":"‹app›","tls_key":"‹s›","port":8443}',
]  # fmt: skip
IN_BASE64 = [
    "yaml\nusers:\n- name: ‹user›\n  user:\n    client-key-data: ‹s›",
    "yaml\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata:\n  name: ‹app›-tls\ndata:\n  tls.key: ‹s›",
    "env\nSIGNING_PRIVATE_KEY_B64=‹s›\nCI=true",
]

PASSWORD_ONLY = [
    "sql\nCREATE USER ‹app› WITH PASSWORD '‹s›';\nGRANT ALL ON DATABASE ‹db› TO ‹app›;",
    "sql\nALTER USER '‹user›'@'%' IDENTIFIED BY '‹s›';\nFLUSH PRIVILEGES;",
    "bash\nmysql -h ‹host› -u ‹user› -p'‹s›' ‹db› < dump.sql\nERROR 1064 (42000) at line ‹number›",
    "bash\nmysqldump -u ‹user› -p‹s› ‹db› > /tmp/out.sql",
    "bash\nPGPASSWORD=‹s› psql -h ‹host› -U ‹user› -d ‹db› -c 'select 1'",
    "bash\nsshpass -p '‹s›' ssh -o StrictHostKeyChecking=no ‹user›@‹host› uptime",
    "bash\ncurl -u ‹user›:‹s› https://‹site›/rest/api/2/items\n<html><title>502 Bad Gateway</title></html>",
    "bash\ncurl --user '‹user›:‹s›' -X DELETE https://‹site›/_index/logs",
    "bash\ndocker login registry.kestrel.dev -u ‹user› -p ‹s›\nError response from daemon: unauthorized",
    "bash\nredis-cli -h ‹host› -a ‹s› ping\nWarning: Using a password with '-a'",
    "bash\nwget --user=‹user› --password='‹s›' https://‹site›/files.zip",
    "bash\necho '‹user›:‹s›' | sudo chpasswd",
    "bash\necho ‹s› | sudo -S systemctl restart ‹app›",
    "bash\nnet use Z: \\\\nas\\share /user:‹user› ‹s›",
    "bash\nhtpasswd -bc /etc/nginx/.htpasswd ‹user› ‹s›",
    "bash\nldapsearch -x -H ldap://‹host› -D 'cn=‹user›,dc=marlin' -w '‹s›' -b dc=marlin",
    "bash\nopenssl pkcs12 -export -in cert.pem -out out.p12 -passout pass:‹s›",
    "bash\nkeytool -importkeystore -srckeystore a.jks -srcstorepass ‹s› -destkeystore b.p12",
    "bash\nmongosh --host ‹host› -u ‹user› -p ‹s› --authenticationDatabase admin",
    "bash\nsqlcmd -S ‹host› -U sa -P '‹s›' -Q 'SELECT @@VERSION'",
    "bash\nansible-playbook site.yml -e 'ansible_become_pass=‹s›'",
    "ini\n[web]\n‹host› ansible_user=‹user› ansible_ssh_pass=‹s› ansible_port=22",
    "\nmachine ‹site›\n  login ‹user›\n  password ‹s›",
    "\nmachine ‹host› login ‹user› password ‹s›",
    "\n# ~/.pgpass\n‹host›:5432:‹db›:‹user›:‹s›",
    "\nServer=‹host›;Database=‹db›;User Id=‹user›;Password=‹s›;Encrypt=false",
    'json\n"ConnectionStrings": {\n  "Default": "Server=‹host›;Initial Catalog=‹db›;User ID=‹user›;Password=‹s›;TrustServerCertificate=True"\n}',
    "\nDRIVER={ODBC Driver 17 for SQL Server};SERVER=‹host›;DATABASE=‹db›;UID=‹user›;PWD=‹s›",
    "\njdbc:mysql://‹host›:3306/‹db›?useSSL=false&user=‹user›&password=‹s›",
    "\nhost=‹host› port=5432 dbname=‹db› user=‹user› password=‹s› sslmode=disable",
    "properties\nspring.datasource.url=jdbc:postgresql://‹host›:5432/‹db›\nspring.datasource.username=‹user›\nspring.datasource.password=‹s›",
    'xml\n<tomcat-users>\n  <role rolename="manager-gui"/>\n  <user username="‹user›" password="‹s›" roles="manager-gui"/>\n</tomcat-users>',
    "xml\n<server>\n  <id>releases</id>\n  <username>‹user›</username>\n  <password>‹s›</password>\n</server>",
    "php\ndefine('DB_USER', '‹user›');\ndefine('DB_PASSWORD', '‹s›');\ndefine('DB_HOST', '‹host›');",
    "php\n$link = new mysqli('‹host›', '‹user›', '‹s›', '‹db›');",
    "python\nconn = psycopg2.connect(host=\"‹host›\", user=\"‹user›\", password=\"‹s›\", dbname=\"‹db›\")",
    "python\nserver = smtplib.SMTP(\"‹host›\", 587)\nserver.starttls()\nserver.login(\"‹user›\", \"‹s›\")",
    "python\nDATABASES = {\n    'default': {\n        'NAME': '‹db›',\n        'USER': '‹user›',\n        'PASSWORD': '‹s›',\n    }\n}",
    'java\nConnection c = DriverManager.getConnection("jdbc:oracle:thin:@‹host›:1521/XE", "‹user›", "‹s›");',
    'csharp\nvar cred = new NetworkCredential("‹user›", "‹s›");',
    'powershell\n$p = ConvertTo-SecureString "‹s›" -AsPlainText -Force\n$c = New-Object PSCredential("‹user›", $p)',
    "js\nawait page.type('#username', '‹user›');\nawait page.type('#password', '‹s›');\nawait page.click('button');",
    'python\ndriver.find_element(By.ID, "password").send_keys("‹s›")',
    "js\ncy.login({ email: 'qa', password: '‹s›' })",
    "\nPOST /login HTTP/1.1\nHost: ‹site›\nContent-Type: application/x-www-form-urlencoded\n\nusername=‹user›&password=‹s›&remember=1",
    '\n‹time› DEBUG --> POST /auth {"username":"‹user›","password":"‹s›"}',
    "\n‹time› ‹level› Parameters: {\"utf8\"=>\"x\", \"user\"=>{\"login\"=>\"‹user›\", \"password\"=>\"‹s›\"}}",
    "\nnetwork={\n  ssid=\"workshop\"\n  psk=\"‹s›\"\n  key_mgmt=WPA-PSK\n}",
    "ini\nrequirepass ‹s›\nmaxmemory 256mb\nappendonly yes",
    "ini\n[client]\nuser=‹user›\npassword=‹s›\nhost=‹host›",
    "ini\n//‹host›/share /mnt/nas cifs username=‹user›,password=‹s›,vers=3.0 0 0",
    "yaml\nrabbitmq:\n  default_user: ‹user›\n  default_pass: ‹s›",
    "yaml\nmqtt:\n  broker: ‹host›\n  username: ‹user›\n  password: ‹s›",
    "yaml\nwifi:\n  ssid: workshop\n  password: \"‹s›\"\nlogger:",
    "yaml\nauth:\n  postgresPassword: ‹s›\n  database: ‹db›",
    "\nFTP> open ‹host›\n220 ready\nUSER ‹user›\n331 need more\nPASS ‹s›\n530 Login incorrect.",
    "\nusername: ‹user›\npassword: ‹s›",
    "\nLogin: ‹user›\nPass: ‹s›\nURL: https://‹site›",
    "vb\nconn.Open \"Provider=SQLOLEDB;Data Source=‹host›;User ID=‹user›;Password=‹s›;\"",
    "robotframework\nInput Text        id=user        ‹user›\nInput Password    id=password    ‹s›",
]  # fmt: skip
PASSWORD_PROSE = [
    "-\nI set up a demo instance at https://‹site›, the password is ‹s› and the user is ‹user›.",
    "-\nYou can log in with ‹user› / ‹s› to see it.",
    '-\nMy password is "‹s›", maybe the sign in it matters?',
    "-\nTest account: user ‹user›, password ‹s› (read-only).",
    "-\n- URL: https://‹site›\n- Username: ‹user›\n- Password: ‹s›",
    "-\n**Credentials:** `‹user›` / `‹s›`",
    "-\ncredentials are ‹user›:‹s› if you want to try it yourself.",
    "-\n| user | password |\n|---|---|\n| ‹user› | ‹s› |",
    "-\nThe default admin password was changed to `‹s›`, afterwards nobody can log in.",
    "-\npw: ‹s›",
]

HEADERS = [
    "\n> GET /v1/items HTTP/1.1\n> Host: ‹site›\n> ‹given›: ‹s›\n> Accept: */*\n< HTTP/1.1 500 Internal Server Error",
    '\nPOST /graphql HTTP/1.1\nHost: ‹site›\n‹given›: ‹s›\nContent-Type: application/json\n\n{"query":"{ me }"}',
    "bash\ncurl -v https://‹site›/v1/items -H '‹given›: ‹s›' -H 'Accept: application/json'",
    'bash\ncurl -X PUT \\\n  --header "‹given›: ‹s›" \\\n  https://‹site›/items/‹number›',
    'bash\nwget --header="‹given›: ‹s›" https://‹site›/export.csv',
    "http\n### list\nGET https://‹site›/v1/items\n‹given›: ‹s›\n",
    "\n‹time› DEBUG o.a.http.headers - http-outgoing-0 >> ‹given›: ‹s›",
    "\n‹time› TRACE sending headers\n  accept: */*\n  ‹given›: ‹s›\n  connection: keep-alive",
]
HEADER_OBJECTS = [
    'python\nheaders = {\n    "Accept": "application/json",\n    "‹given›": "‹s›",\n}\nrequests.get("https://‹site›/v1", headers=headers)',
    "js\naxios.get('https://‹site›/v1', {\n  headers: { '‹given›': '‹s›' },\n});",
    'go\nreq.Header.Set("‹given›", "‹s›")\nresp, err := http.DefaultClient.Do(req)',
    'java\nHttpRequest.newBuilder(uri).header("‹given›", "‹s›").GET().build();',
    'csharp\nclient.DefaultRequestHeaders.Add("‹given›", "‹s›");',
    "\nAxiosError: Request failed with status code 500\n  config: {\n    headers: {\n      Accept: 'application/json',\n      '‹given›': '‹s›'\n    },",
    '\n{"method":"GET","path":"/v1","headers":{"host":"‹site›","‹given›":"‹s›"},"status":500}',
    '\nmsg="upstream" headers="map[Accept:[*/*] ‹given›:[‹s›]]" status=502',
    "xml\n<header name=\"‹given›\">‹s›</header>",
    'yaml\nreceivers:\n  otlp:\n    headers:\n      ‹given›: "‹s›"',
    '\n{"name":"‹given›","value":"‹s›"}',
]  # fmt: skip

COOKIES = [
    "\nGET /dashboard HTTP/1.1\nHost: ‹site›\nCookie: lang=en; ‹given›=‹s›; theme=dark\nAccept: text/html",
    "\nHTTP/1.1 302 Found\nLocation: /home\nSet-Cookie: ‹given›=‹s›; Path=/; HttpOnly; SameSite=Lax",
    "\n< HTTP/2 200\n< content-type: text/html\n< set-cookie: ‹given›=‹s›; path=/; secure",
    "bash\ncurl 'https://‹site›/home' -b '‹given›=‹s›' --compressed",
    "bash\ncurl 'https://‹site›/home' \\\n  -H 'accept: text/html' \\\n  -H 'cookie: consent=1; ‹given›=‹s›' \\\n  --insecure",
    "python\ncookies = {'‹given›': '‹s›'}\nrequests.get('https://‹site›/home', cookies=cookies)",
    "js\ndocument.cookie = '‹given›=‹s›; path=/';",
    "\n# Netscape HTTP Cookie File\n‹site›\tFALSE\t/\tTRUE\t1767225600\t‹given›\t‹s›",
    '\n"cookies": [\n  {\n    "name": "‹given›",\n    "value": "‹s›",\n    "httpOnly": true\n  }\n]',
    '\n‹time› DEBUG rack: HTTP_COOKIE => "‹given›=‹s›"',
]

URLS = [
    "env\nDATABASE_URL=‹s›\nPORT=8000",
    "yaml\nservices:\n  web:\n    environment:\n      - DATABASE_URL=‹s›\n      - TZ=UTC",
    'python\nengine = create_engine("‹s›", echo=True)\nengine.connect()',
    "js\nawait connect('‹s›', { retry: ‹number› });",
    "bash\n‹app› migrate --url ‹s› up\nerror: dirty database version ‹number›",
    "\n‹time› ERROR [‹app›] could not connect to ‹s›: connection refused",
    "\nsqlalchemy.exc.OperationalError: could not parse rfc1738 URL from string '‹s›'",
    "ini\n[alembic]\nscript_location = migrations\nsqlalchemy.url = ‹s›",
    'toml\n[broker]\nurl = "‹s›"\nprefetch = ‹number›',
    "-\nThe connection string is ‹s› and it works with the old client.",
    'go\ndb, err := sql.Open("driver", "‹s›")\nif err != nil {\n\tpanic(err)\n}',
    'yaml\nstringData:\n  uri: "‹s›"',
    "\npanic: dial ‹s›: i/o timeout\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:‹number› +0x1d",
]
GIT_URLS = [
    "bash\ngit clone ‹s›\nfatal: unable to access: The requested URL returned error: 403",
    "\n$ git remote -v\norigin  ‹s› (fetch)",
    "\n# ~/.git-credentials\n‹s›",
    "bash\npip install git+‹s›@main",
    "\n[url]\n\tinsteadOf = ‹s›",
    "\nfatal: unable to access '‹s›/': Could not resolve host",
]
PROXY_URLS = [
    "bash\nexport HTTPS_PROXY=‹s›\nnpm install",
    "\nnpm config set proxy ‹s›\nnpm ERR! code ECONNRESET",
    '\nAcquire::http::Proxy "‹s›";',
    "bash\ncurl -x ‹s› https://‹site›/",
    "\n[global]\nproxy = ‹s›\ntimeout = 60",
]
LINKS = [
    "-\nThis is the link that returns 404: ‹s›",
    "\n‹time› ‹level› GET ‹s› -> 502 (‹number› ms)",
    'bash\ncurl -i -X POST -H "Content-Type: application/json" -d \'{"text":"hi"}\' ‹s›',
    'python\nr = requests.post(\n    "‹s›",\n    json={"text": "hi"},\n)\nprint(r.status_code)',
    'json\n{\n  "name": "‹app›",\n  "url": "‹s›"\n}',
    "yaml\nreceivers:\n  - name: ops\n    webhook_url: ‹s›",
    "env\nWEBHOOK_URL=‹s›\nDEBUG=1",
    "js\nconst hook = '‹s›';\nawait fetch(hook, { method: 'POST' });",
    "\nrequests.exceptions.HTTPError: 404 Client Error: Not Found for url: ‹s›",
    "-\n[the request](‹s›) in a private window gives the same.",
]

REGISTRY = {
    "npmrc": [
        "\n# ~/.npmrc\n//registry.npmjs.org/:_authToken=‹s›\nregistry=https://registry.npmjs.org/",
        "\n$ cat .npmrc\nalways-auth=true\n//npm.kestrel.dev/:_authToken=\"‹s›\"",
    ],
    "npm_auth": ["\n# .npmrc\nregistry=https://npm.kestrel.dev/\n_auth=‹s›\nalways-auth=true"],
    "yarnrc": ["yaml\nnpmScopes:\n  kestrel:\n    npmAlwaysAuth: true\n    npmAuthToken: ‹s›"],
    "pypirc": [
        "ini\n# ~/.pypirc\n[pypi]\nusername = __token__\npassword = ‹s›",
        "bash\ntwine upload -u __token__ -p ‹s› dist/*\nHTTPError: 400 Bad Request",
    ],
    "docker_auth": [
        'json\n{\n  "auths": {\n    "https://index.docker.io/v1/": {\n      "auth": "‹s›"\n    }\n  }\n}',
        '\n$ cat ~/.docker/config.json\n{"auths":{"registry.kestrel.dev":{"auth":"‹s›"}}}',
    ],
    "cargo": ['toml\n# ~/.cargo/credentials.toml\n[registry]\ntoken = "‹s›"', "bash\ncargo login ‹s›"],
    "gem": ["yaml\n# ~/.gem/credentials\n---\n:rubygems_api_key: ‹s›"],
    "nuget": [
        "bash\ndotnet nuget push bin/A.nupkg --api-key ‹s› --source https://api.nuget.org/v3/index.json",
        'xml\n<packageSourceCredentials>\n  <kestrel>\n    <add key="Username" value="ci" />\n    <add key="ClearTextPassword" value="‹s›" />\n  </kestrel>\n</packageSourceCredentials>',
    ],
    "composer": ['json\n{\n  "http-basic": {\n    "repo.kestrel.dev": {\n      "username": "ci",\n      "password": "‹s›"\n    }\n  }\n}'],
    "hex": ["bash\nmix hex.publish --yes HEX_API_KEY=‹s›", "env\nHEX_API_KEY=‹s›"],
}  # fmt: skip

MAIL = [
    "-\nIf you need logs, write to ‹s› and I will send them.",
    "-\nContact: <‹s›>",
    "-\nI am logged in as ‹s› and see an empty list.",
    "-\nReported by a customer (‹s›) last week.",
    "\ncommit 9fceb02\nAuthor: M. K. <‹s›>\nDate:   Mon Mar 11 08:14:55 2024 +0100\n\n    fix parser",
    "\n    Handle empty frames\n\n    Signed-off-by: M. K. <‹s›>\n    Cc: list",
    "\nCo-authored-by: M. K. <‹s›>",
    'json\n{\n  "name": "‹app›",\n  "author": "M. K. <‹s›>",\n  "version": "‹version›"\n}',
    'toml\n[project]\nname = "‹app›"\nauthors = [{ name = "M. K.", email = "‹s›" }]',
    "\n‹time› ERROR user ‹s› not found in directory (realm=main)",
    "\n220 mx ready\nMAIL FROM:<‹s›>\n250 ok\nRCPT TO:<list>\n550 rejected",
    '\n{"id": ‹number›, "email": "‹s›", "verified": false}',
    "xml\n<developer>\n  <id>mk</id>\n  <email>‹s›</email>\n</developer>",
    "bash\ngit config --global user.email \"‹s›\"\ngit commit -m 'x'",
    "sql\nINSERT INTO users (id, email) VALUES (‹number›, '‹s›');",
    "-\n[mail me](mailto:‹s›?subject=bug)",
    "\nActiveRecord::RecordInvalid: Email ‹s› has already been taken",
    "\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPpub ‹s›",
    "python\n__author__ = 'M. K.'\n__email__ = '‹s›'",
    "yaml\nmaintainers:\n  - name: M. K.\n    email: ‹s›",
    "\nGET /api/users?email=‹s›&page=1 500 in ‹number›ms",
]


# ---- Kinds of credential ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sort:
    """One finer name."""

    kind: str
    name: str
    weight: float
    shape: Shape
    carriers: Sequence[str] = tuple(MARKED)
    given: str = "token|api key|access token|auth token|secret"


def sorts(kind: str, *rows: tuple[Any, ...]) -> list[Sort]:
    """The rows, each the fields of `Sort` after its kind, as finer names of one kind."""
    return [Sort(kind, *row) for row in rows]


GUID = "<h8>-<h4>-4<h3>-a<h3>-<h12>"
ACCOUNT = "AKIA<t16>"
STORAGE = "<b86>=="
AGE = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"


def age(dice: Dice) -> Body:
    """An age identity in Bech32."""
    value = "AGE-SECRET-" + "KEY-1" + dice.of(AGE, 58)
    return value, value


def wireguard(dice: Dice) -> Body:
    """A clamped Curve25519 key in base64."""
    key = bytearray(dice.randbytes(32))
    key[0] &= 248
    key[31] = key[31] & 127 | 64
    value = base64.b64encode(bytes(key)).decode()
    return value, value


def openai_json(dice: Dice) -> Body:
    """A key of an OpenAI project."""
    value = f"sk-{dice.choice(['proj', 'svcacct', 'admin'])}-" + dice.fill("<u74>T3BlbkFJ<u74>")
    return value, value


def aws_session(dice: Dice) -> Body:
    """A session token of STS."""
    value = dice.choice(["IQoJb3JpZ2luX2Vj", "FwoGZXIvYXdzE"]) + dice.of(CLASSES["b"], 320, 900) + "=="
    return value, value


def pypi(dice: Dice) -> Body:
    """An upload token of PyPI: a macaroon in base64."""
    inner = f'{{"version": 1, "permissions": "user", "id": "{dice.fill(GUID)}"}}'.encode()
    start = b"\x02\x01\x08pypi.org\x02\x24"
    value = "pypi-" + url64(start + dice.fill(GUID).encode() + b"\x00\x02\x2a" + inner + dice.randbytes(40))
    return value, value


def grafana_cloud(dice: Dice) -> Body:
    """A Grafana Cloud access policy token."""
    inner = {"o": dice.fill("<d6>"), "n": "ci", "k": dice.fill("<w24>"), "m": {"r": "eu"}}
    value = "glc_" + base64.b64encode(compact(inner)).decode()
    return value, value


def signed_cookie(dice: Dice) -> Body:
    """A payload, a time and a signature, as Flask and Django write them."""
    signature = dice.fill("<u27>")
    return f"{url64(compact({'_user_id': dice.fill('<d3>')}))}.{dice.fill('Z<u5>')}.{signature}", signature


def laravel_cookie(dice: Dice) -> Body:
    """An encrypted payload in base64, percent-encoded at its end."""
    inner = {"iv": dice.fill("<b22>=="), "value": dice.fill("<b64>"), "mac": dice.fill("<h64>"), "tag": ""}
    value = base64.b64encode(compact(inner)).decode().rstrip("=") + "%3D"
    return value, value


def recovery_codes(dice: Dice) -> Body:
    """Backup codes of a second factor; the secret is the last."""
    codes = [dice.fill("<h5>-<h5>") for _ in range(4)]
    return " ".join(codes), codes[-1]


def npg(dice: Dice) -> Body:
    """A Neon password with its mark."""
    value = "npg_" + dice.of(ALNUM, 12)
    return value, value


def url(scheme: str, tail: str, secret: Callable[[Dice], Body] = url_password) -> Callable[[Dice], Body]:
    """A URL with user and password."""

    def body(dice: Dice) -> Body:
        value = secret(dice)[1]
        user = "" if scheme == "redis" and dice.random() < 0.6 else dice.choice(USERS)
        return f"{scheme}://{user}:{value}@{fill_slots(dice, tail, {})}", value

    return body


SEEN = "api key|secret key|access token|auth token|token"
KINDS_OF_CREDENTIAL = [
    *sorts(
        "secret_private_key",
        ("rsa_pem", 26, RSA, BLOCK),
        ("openssh", 24, OPENSSH, BLOCK),
        ("pkcs8_pem", 16, PKCS8, BLOCK),
        ("service_account_json", 14, escaped(PKCS8), ONE_LINE),
        ("ec_pem", 6, EC, BLOCK),
        ("pem_escaped_line", 5, escaped(RSA), ONE_LINE),
        ("kubeconfig_client_key", 6, encoded(RSA), IN_BASE64),
        ("encrypted_pem", 4, LOCKED, BLOCK),
        ("pgp_block", 3, PGP, BLOCK),
        ("putty_ppk", 2, putty, BLOCK),
        ("age_identity", 2, age, (*BLOCK[:1], *ASSIGNED[:8]), "age secret key|sops age key"),
        (
            "wireguard",
            3,
            wireguard,
            ("ini\n[Interface]\nPrivateKey = ‹s›\nAddress = 10.8.0.2/24", "env\nWIREGUARD_PRIVATE_KEY=‹s›"),
        ),
        (
            "jwk_private_part",
            2,
            "<u43>",
            ('json\n{"kty":"EC","crv":"P-256","x":"f83OJ3D2","y":"x_FEzRu9","d":"‹s›"}',),
        ),
    ),
    *sorts(
        "secret_github",
        ("github_pat_classic", 44, checked("gh" "p_"), MARKED, "github token|gh token|github pat|token"),
        ("github_pat_fine", 20, "github_" "pat_<w22>_<w59>", MARKED, "github token|gh pat|access token"),
        ("github_oauth", 12, checked("gh" "o_"), MARKED, "github token|oauth token|hosts token"),
        ("github_actions", 14, checked("gh" "s_"), MARKED, "github token|installation token"),
        ("github_user_to_server", 4, checked("gh" "u_"), MARKED, "user token|copilot token"),
        ("github_refresh", 3, "ghr_<w76>", MARKED, "refresh token"),
        ("github_old_hex", 6, "<h40>", ASSIGNED, "github token|github oauth token|github access token"),
        ("github_in_clone_url", 10, "https://x-access-token:(ghs_<w36>)@github.com/kestrel/marlin.git", GIT_URLS),
        ("github_app_secret", 2, "<h40>", ASSIGNED, "github client secret|gh app client secret"),
    ),
    *sorts(
        "secret_gitlab",
        ("gitlab_pat", 50, "gl" "pat-<u20>", MARKED, "gitlab token|private token|gitlab access token"),
        ("gitlab_pat_routable", 8, "glpat-<u27>.01.<l9>", MARKED, "gitlab token|ci token"),
        ("gitlab_runner", 12, one_of("glrt-<u20>", "glrt-t1_<u20>", "GR1348941<u20>"), MARKED, "runner token"),
        ("gitlab_deploy", 8, "gldt-<u20>", MARKED, "deploy token|registry token"),
        ("gitlab_job", 8, "glcbt-<h2>_<u20>", MARKED, "ci job token"),
        ("gitlab_trigger", 4, "glptt-<h40>", MARKED, "trigger token"),
        ("gitlab_agent", 3, "glagent-<u50>", MARKED, "agent token"),
        ("gitlab_feed", 2, "glft-<u20>", MARKED, "feed token"),
        ("gitlab_oauth_secret", 2, "gloas-<h64>", MARKED, "gitlab client secret"),
        ("gitlab_clone_url", 6, "https://oauth2:(glpat-<u20>)@gitlab.com/kestrel/marlin.git", GIT_URLS),
        (
            "gitlab_private_token_header",
            4,
            "<u20>",
            ("bash\ncurl --header 'PRIVATE-TOKEN: ‹s›' https://gitlab.kestrel.dev/api/v4/user",),
        ),
    ),
    *sorts(
        "secret_aws",
        ("aws_access_key_id", 34, ACCOUNT, MARKED, "aws access key id|access key|s3 access key id"),
        ("aws_secret_key", 40, "<b40>", ASSIGNED, "aws secret access key|secret access key|s3 secret access key"),
        (
            "aws_credentials_file",
            16,
            "<b40>",
            (
                "ini\n# ~/.aws/credentials\n[default]\naws_access_key_id = AKIA‹mark›\naws_secret_access_key = ‹s›",
                "\n$ aws configure\nAWS Access Key ID [None]: AKIA‹mark›\nAWS Secret Access Key [None]: ‹s›\nDefault region name [None]:",
                'json\n{\n  "AccessKeyId": "AKIA‹mark›",\n  "SecretAccessKey": "‹s›"\n}',
                'python\ns3 = boto3.client("s3", aws_access_key_id="AKIA‹mark›", aws_secret_access_key="‹s›")',
                'js\nAWS.config.update({ accessKeyId: "AKIA‹mark›", secretAccessKey: "‹s›" });',
                'hcl\nprovider "aws" {\n  access_key = "AKIA‹mark›"\n  secret_key = "‹s›"\n}',
            ),
        ),
        ("aws_temporary_id", 6, "AS" "IA<t16>", MARKED, "aws access key id"),
        ("aws_session_token", 10, aws_session, ASSIGNED, "aws session token|session token"),
        ("aws_bedrock_key", 3, "AB" "SK<b128>=", MARKED, "aws bearer token bedrock"),
        ("aws_presigned_signature", 5, "https://marlin-logs.s3.amazonaws.com/a.zip?X-Amz-Expires=3600&X-Amz-Signature=(<h64>)", LINKS),
        ("aws_ses_smtp_password", 3, "B<b43>", ASSIGNED, "ses smtp password|aws ses password"),
        ("aws_mws", 1, "amzn." "mws.<h8>-<h4>-<h4>-<h4>-<h12>", MARKED, "mws auth token"),
        ("minio_secret", 4, "<w40>", ASSIGNED, "minio secret key|minio root password|s3 secret key"),
    ),
    *sorts(
        "secret_azure",
        (
            "azure_storage_connection",
            30,
            f"DefaultEndpointsProtocol=https;AccountName=marlinlogs;AccountKey=({STORAGE});EndpointSuffix=core.windows.net",
            [c for c in ASSIGNED if '"‹s›"' in c or "env\n" in c],
            "azure storage connection string|azure web jobs storage",
        ),
        ("azure_storage_key", 18, one_of(STORAGE, "<b76>+ASt<b6>=="), ASSIGNED, "azure storage key|account key|storage account key"),
        ("azure_client_secret", 20, "<w3>8Q~<u34>", ASSIGNED, "azure client secret|arm client secret|client secret"),
        ("azure_sas_link", 14, "https://marlinlogs.blob.core.windows.net/dumps/a.dmp?sv=2022-11-02&sr=b&sp=r&sig=(<w20>%2B<w20>%3D)", LINKS),
        ("azure_service_bus", 10, "Endpoint=sb://marlin.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=(<b43>=)", ASSIGNED[:4] + ASSIGNED[10:12], "service bus connection"),
        ("azure_devops_pat", 8, one_of("<z52>", "<w76>AZDO<w4>"), ASSIGNED, "azure devops pat|azure devops ext pat|system access token"),
        ("azure_cosmos", 6, "AccountEndpoint=https://marlin.documents.azure.com:443/;AccountKey=(<b86>==);", [c for c in ASSIGNED if '"‹s›"' in c], "cosmos connection string"),
        ("azure_function_key_link", 4, "https://marlin.azurewebsites.net/api/run?code=(<u44>AzFu<u6>)==", LINKS),
        ("azure_openai_key", 8, one_of("<h32>", "<w76>ACAAAB<w2>"), ASSIGNED, "azure openai api key|azure openai key"),
        ("azure_acr_password", 2, "<w42>+ACR<w6>", ASSIGNED, "acr password|registry password"),
        ("azure_iot_hub", 3, "HostName=marlin.azure-devices.net;DeviceId=d1;SharedAccessKey=(<b43>=)", ASSIGNED[:4], "iothub device connection string"),
    ),
    *sorts(
        "secret_google",
        ("google_api_key", 60, "AI" "za<u35>", MARKED, "google api key|gemini api key|maps api key|firebase api key"),
        ("google_maps_link", 10, "https://maps.googleapis.com/maps/api/geocode/json?address=oslo&key=(AIza<u35>)", LINKS),
        ("google_oauth_access", 12, "ya" "29.(<u120-180>)", MARKED, "access token|google oauth token"),
        ("google_client_secret", 14, "GOC" "SPX-<u28>", MARKED, "google client secret|client secret"),
        ("google_refresh", 8, "1/" "/0<w1><u100>", ASSIGNED, "refresh token|google refresh token"),
        ("firebase_server_key", 4, "AAAA<u7>:APA91b<u134>", MARKED, "fcm server key|firebase server key"),
        ("gcs_hmac_secret", 2, "<b40>", ASSIGNED, "gcs hmac secret|gs secret access key"),
        ("recaptcha_secret", 3, "6L<u6>AAAAA<u27>", ASSIGNED, "recaptcha secret key|recaptcha private key"),
    ),
    *sorts(
        "secret_llm",
        ("openai_project", 30, openai_json, MARKED, "openai api key|api key|llm api key"),
        ("openai_old", 12, "sk-<w20>T3Blbk" "FJ<w20>", MARKED, "openai api key|api key"),
        ("anthropic", 14, "sk-ant-" "api03-<u93>AA", MARKED, "anthropic api key|claude api key"),
        ("anthropic_oauth", 2, "sk-ant-" "oat01-<u93>AA", MARKED, "claude code oauth token"),
        ("huggingface", 14, "hf" "_<k34>", MARKED, "hf token|hugging face hub token|huggingface api key"),
        ("openrouter", 6, "sk-or-" "v1-<h64>", MARKED, "openrouter api key"),
        ("deepseek", 6, "sk-<h32>", MARKED, "deepseek api key|openai api key"),
        ("groq", 5, "gs" "k_<w20>WGdyb3FY<w24>", MARKED, "groq api key"),
        ("replicate", 3, "r8" "_<w37>", MARKED, "replicate api token"),
        ("perplexity", 2, "pp" "lx-<w48>", MARKED, "pplx api key|perplexity api key"),
        ("xai", 2, "xa" "i-<w80>", MARKED, "xai api key"),
        ("mistral", 3, "<w32>", ASSIGNED, "mistral api key"),
        ("cohere", 2, "<w40>", ASSIGNED, "cohere api key|co api key"),
        ("together", 2, one_of("<h64>", "tgp_v1_<u43>"), ASSIGNED, "together api key"),
        ("langsmith", 3, "lsv2_" "pt_<h32>_<h10>", MARKED, "langsmith api key|langchain api key"),
        ("pinecone", 2, one_of("pcsk_<w5>_<w63>", GUID), ASSIGNED, "pinecone api key"),
        ("elevenlabs", 1, "sk_<h48>", MARKED, "elevenlabs api key|xi api key"),
        ("litellm_master", 1, "sk-<u22>", MARKED, "litellm master key"),
        ("voyage", 1, "pa-<u43>", MARKED, "voyage api key"),
        ("nvidia_nim", 1, "nva" "pi-<u64>", MARKED, "nvidia api key"),
        ("tavily", 2, "tvly-<w32>", MARKED, "tavily api key"),
        ("wandb", 3, "<h40>", ASSIGNED, "wandb api key"),
        ("zhipu", 1, "<h32>.(<w16>)", ASSIGNED, "zhipu api key|glm api key"),
    ),
    *sorts(
        "secret_chat",
        ("slack_bot", 22, "xo" "xb-<d12>-<d13>-(<w24>)", MARKED, "slack bot token|slack token|bot token"),
        ("slack_webhook", 16, "https://hooks.slack.com/services/T<U10>/B<U10>/(<w24>)", LINKS),
        ("slack_user", 5, "xo" "xp-<d12>-<d12>-<d13>-(<h32>)", MARKED, "slack user token|slack token"),
        ("slack_app", 4, "xa" "pp-1-A<U10>-<d13>-(<h64>)", MARKED, "slack app token"),
        ("slack_signing_secret", 3, "<h32>", ASSIGNED, "slack signing secret"),
        ("slack_config", 1, "xoxe.xo" "xp-1-(<w166>)", MARKED, "slack config token"),
        ("slack_cookie_token", 2, "xo" "xc-<d12>-<d12>-<d13>-(<h64>)", MARKED, "slack token"),
        ("discord_webhook", 16, "https://discord.com/api/webhooks/<d18-19>/(<u68>)", LINKS),
        ("discord_bot", 16, "M<w23-25>.G<u5>.(<u38>)", MARKED, "discord token|bot token|discord bot token"),
        ("discord_bot_old", 6, "N<w23>.X<u5>.(<u27>)", MARKED, "discord token|token"),
        ("telegram_bot", 16, "<d9-10>:(AA<u33>)", MARKED, "telegram bot token|telegram token|bot token"),
        ("telegram_link", 6, "https://api.telegram.org/bot<d10>:(AA<u33>)/getUpdates", LINKS),
        ("teams_webhook", 5, f"https://kestrel.webhook.office.com/webhookb2/{GUID}@{GUID}/IncomingWebhook/(<h32>)/{GUID}", LINKS),
        ("mattermost_hook", 2, "https://chat.kestrel.dev/hooks/(<z26>)", LINKS),
        ("google_chat_hook", 2, "https://chat.googleapis.com/v1/spaces/AAAA<u7>/messages?key=AIza<u35>&token=(<u43>)%3D", LINKS),
        ("matrix_access", 3, "sy" "t_<w12>_(<w20>)_<w6>", MARKED, "matrix access token|access token"),
        ("feishu_hook", 1, f"https://open.feishu.cn/open-apis/bot/v2/hook/({GUID})", LINKS),
        ("dingtalk_hook", 1, "https://oapi.dingtalk.com/robot/send?access_token=(<h64>)", LINKS),
        ("pushover", 1, "a<l29>", ASSIGNED, "pushover token|pushover api token"),
        ("ntfy", 1, "tk_<l29>", MARKED, "ntfy token"),
    ),
    *sorts(
        "secret_registry",
        ("npm_token", 26, checked("np" "m_"), [*MARKED, *REGISTRY["npmrc"] * 12], "npm token|node auth token"),
        ("npm_token_uuid", 8, GUID, REGISTRY["npmrc"]),
        ("npm_auth_base64", 5, basic, REGISTRY["npm_auth"]),
        ("yarn_berry_token", 3, f"npmregistry.{GUID}", REGISTRY["yarnrc"]),
        ("pypi_token", 18, pypi, [*MARKED, *REGISTRY["pypirc"] * 12], "pypi token|twine password|uv publish token"),
        ("docker_pat", 12, "dckr_" "pat_<u27>", MARKED, "docker token|dockerhub password|docker password"),
        ("docker_org_token", 1, "dckr_" "oat_<u32>", MARKED, "docker token"),
        ("docker_config_auth", 12, basic, REGISTRY["docker_auth"]),
        ("rubygems", 4, "rubygems_<h48>", [*MARKED, *REGISTRY["gem"] * 10], "gem host api key|rubygems api key"),
        ("crates_io", 4, "ci" "o<w32>", [*MARKED, *REGISTRY["cargo"] * 10], "cargo registry token"),
        ("nuget_key", 4, "oy" "2<z43>", [*MARKED, *REGISTRY["nuget"] * 10], "nuget api key"),
        ("nuget_feed_password", 2, random_password, REGISTRY["nuget"][1:]),
        ("composer_auth", 2, random_password, REGISTRY["composer"]),
        ("hex_pm", 1, "<h32>", REGISTRY["hex"]),
        ("artifactory_key", 4, "AK" "Cp8<w69>", MARKED, "artifactory api key|jfrog api key"),
        ("artifactory_reference", 3, "cmVmd" "GtuOjAxO<w51>", MARKED, "artifactory token|jf access token"),
        ("clojars", 1, "CLO" "JARS_<h60>", MARKED, "clojars password"),
        ("cloudsmith", 1, "<h40>", ASSIGNED, "cloudsmith api key"),
        ("quay_robot", 1, "<U64>", ASSIGNED, "quay password|quay robot token"),
        ("vscode_marketplace", 1, "<z52>", ASSIGNED, "vsce pat|ovsx pat"),
        ("gemfury_url", 1, "https://(<w20>)@pypi.fury.io/kestrel/", GIT_URLS[3:4] + LINKS[:1]),
        ("conda_token_url", 1, f"https://conda.anaconda.org/t/ke-({GUID})/kestrel", LINKS[:2]),
    ),
    *sorts(
        "secret_service",
        ("stripe_live", 12, one_of("sk_" "live_<w24>", "sk_" "live_51<w97>"), MARKED, "stripe secret key|stripe api key"),
        ("stripe_test", 10, "sk_" "test_51<w97>", MARKED, "stripe secret key|stripe key"),
        ("stripe_restricted", 2, "rk_" "live_51<w97>", MARKED, "stripe key"),
        ("stripe_webhook", 5, "wh" "sec_<w32>", MARKED, "stripe webhook secret|webhook secret"),
        ("twilio_auth_token", 6, "<h32>", ASSIGNED, "twilio auth token"),
        ("twilio_api_key", 3, "S" "K<h32>", MARKED, "twilio api key"),
        ("sendgrid", 10, "SG.<u22>.(<u43>)", MARKED, "sendgrid api key|smtp password"),
        ("mailgun", 5, one_of("key-<h32>", "<h32>-<h8>-<h8>"), ASSIGNED, "mailgun api key"),
        ("mailchimp", 3, "<h32>-us<d2>", ASSIGNED, "mailchimp api key"),
        ("brevo", 2, "xkey" "sib-<h64>-<w16>", MARKED, "brevo api key"),
        ("resend", 2, "re_<w8>_<w24>", MARKED, "resend api key"),
        ("shopify", 4, one_of("shp" "at_<h32>", "shpss_<h32>", "shpca_<h32>"), MARKED, "shopify access token"),
        ("square", 2, one_of("EA" "AA<u60>", "sq0csp-<u43>"), MARKED, "square access token"),
        ("paypal_secret", 2, "E<u79>", ASSIGNED, "paypal client secret|paypal secret"),
        ("razorpay_secret", 2, "<w24>", ASSIGNED, "razorpay key secret"),
        ("digitalocean", 6, "do" "p_v1_<h64>", MARKED, "digitalocean token|do token|digitalocean access token"),
        ("cloudflare_token", 6, "<u40>", ASSIGNED, "cloudflare api token|cf api token|cf dns api token"),
        ("cloudflare_global_key", 3, "<h37>", ASSIGNED, "cloudflare api key|cf api key"),
        ("cloudflare_tunnel", 2, "ey" "JhIjoi<w150>", ("bash\ncloudflared tunnel run --token ‹s›", "yaml\ncommand: tunnel run\nenvironment:\n  - TUNNEL_TOKEN=‹s›")),
        ("heroku", 3, one_of(GUID, "HRKU-AA<u58>"), ASSIGNED, "heroku api key"),
        ("vercel", 3, "<w24>", ASSIGNED, "vercel token"),
        ("netlify", 2, one_of("nf" "p_<w36>", "<u43>"), ASSIGNED, "netlify auth token"),
        ("fly_io", 2, "fm2" "_<b400>", ASSIGNED, "fly api token"),
        ("railway_render", 2, "rnd_<w28>", MARKED, "render api key"),
        ("supabase_pat", 2, "sb" "p_<h40>", MARKED, "supabase access token"),
        ("supabase_secret", 2, "sb_" "secret_<u22>_<u8>", MARKED, "supabase service key|supabase secret key"),
        ("planetscale", 1, one_of("pscale_" "pw_<u43>", "pscale_" "tkn_<u43>"), MARKED, "planetscale password"),
        ("neon_password", 2, npg, ASSIGNED, "pgpassword|db password"),
        ("databricks", 4, "da" "pi<h32>", MARKED, "databricks token"),
        ("snyk", 2, GUID, ASSIGNED, "snyk token"),
        ("sentry_auth", 4, one_of("sn" "trys_eyJpYXQi<u120>_<u43>", "sn" "tryu_<h64>"), MARKED, "sentry auth token"),
        ("datadog_api_key", 5, "<h32>", ASSIGNED, "dd api key|datadog api key"),
        ("datadog_app_key", 2, "<h40>", ASSIGNED, "dd app key|datadog app key"),
        ("newrelic", 4, one_of("NR" "AK-<U27>", "<h36>NRAL"), MARKED, "new relic api key|new relic license key"),
        ("grafana_service_account", 4, "gl" "sa_<w32>_<h8>", MARKED, "grafana token|grafana api key"),
        ("grafana_cloud", 2, grafana_cloud, MARKED, "grafana cloud token|loki password"),
        ("vault_token", 5, one_of("hv" "s.<u24>", "hv" "s.CAESI<u90>", "s.<w24>"), ASSIGNED, "vault token"),
        ("terraform_cloud", 3, "<w14>.atl" "asv1.(<u67>)", MARKED, "tf token app terraform io|tfe token"),
        ("pulumi", 2, "pu" "l-<h40>", MARKED, "pulumi access token"),
        ("doppler", 2, one_of("dp.pt.<w43>", "dp.st.prd.<w43>"), MARKED, "doppler token"),
        ("atlassian", 6, "ATA" "TT3xFfGF0<u177>=<H8>", MARKED, "jira api token|atlassian api token"),
        ("atlassian_old", 2, "<w24>", ASSIGNED, "jira api token|confluence token"),
        ("bitbucket_app_password", 3, "ATB" "B<w32>", MARKED, "bitbucket password"),
        ("linear", 2, "lin_" "api_<w40>", MARKED, "linear api key"),
        ("notion", 4, one_of("nt" "n_<d11><w35>", "secret_<w43>"), MARKED, "notion token|notion api key"),
        ("airtable", 3, "pat<w14>.(<h64>)", MARKED, "airtable api key"),
        ("figma", 2, "fi" "gd_<u40>", MARKED, "figma token|figma api key"),
        ("asana", 2, "1/<d16>:(<h32>)", MARKED, "asana token|asana access token"),
        ("postman", 2, "PMA" "K-<h24>-(<h34>)", MARKED, "postman api key"),
        ("contentful", 2, "CFP" "AT-<u43>", MARKED, "contentful management token"),
        ("mapbox_secret", 3, "s" "k.eyJ1Ijoi<w60>.(<u22>)", MARKED, "mapbox token|mapbox downloads token"),
        ("dropbox", 2, "sl.<u130>", MARKED, "dropbox token|dropbox access token"),
        ("okta", 2, "00<u40>", ASSIGNED, "okta api token"),
        ("auth0_client_secret", 2, "<u64>", ASSIGNED, "auth0 client secret"),
        ("sonar", 4, one_of("sq" "u_<h40>", "sq" "p_<h40>", "<h40>"), ASSIGNED, "sonar token|sonar login"),
        ("codecov", 3, GUID, ASSIGNED, "codecov token"),
        ("circleci", 2, one_of("CCI" "PAT_<w22>_<h40>", "<h40>"), ASSIGNED, "circleci token|circle token"),
        ("buildkite", 2, "bk" "ua_<h40>", MARKED, "buildkite api token"),
        ("launchdarkly", 2, f"sdk-{GUID}", MARKED, "launchdarkly sdk key"),
        ("posthog_personal", 2, "ph" "x_<w43>", MARKED, "posthog api key"),
        ("algolia_admin", 2, "<h32>", ASSIGNED, "algolia admin key|algolia api key"),
        ("tailscale", 4, "tskey-" "auth-k<w11>CNTRL-(<w32>)", MARKED, "ts authkey|tailscale auth key"),
        ("ngrok", 3, "2<w26>_(<w21>)", ASSIGNED, "ngrok authtoken|ngrok auth token"),
        ("alibaba_secret", 2, "<w30>", ASSIGNED, "aliyun access key secret|oss access key secret"),
        ("tencent_id", 1, "AK" "ID<w32>", MARKED, "tencent secret id"),
        ("tencent_secret", 1, "<w32>", ASSIGNED, "tencent secret key"),
        ("yandex_cloud", 1, "AQ" "VN<u36>", MARKED, "yc api key"),
        ("facebook_access", 3, "EA" "A<w180>", MARKED, "fb access token|page access token"),
        ("twitter_bearer", 3, "AAAAAAAA" "AAAAAAAAAAAAAA<w30>%3D<w50>", MARKED, "twitter bearer token"),
        ("twitter_access_secret", 2, "<w45>", ASSIGNED, "twitter access token secret"),
        ("openweather", 3, "https://api.openweathermap.org/data/2.5/weather?q=Oslo&appid=(<h32>)", LINKS),
        ("onepassword_service", 1, "ops_" "eyJzaWdu<w420>", MARKED, "op service account token"),
        ("openshift", 2, "sha2" "56~<u43>", MARKED, "oc token|openshift token"),
        ("dynatrace", 1, "dt0" "c01.<U24>.(<U64>)", MARKED, "dynatrace api token|dt api token"),
        ("clickhouse_cloud", 1, "4b" "1d<w38>", MARKED, "clickhouse cloud secret"),
        ("docusign_like_guid", 1, GUID, ASSIGNED, "integration secret key"),
        ("home_assistant_webhook", 1, "https://ha.nas.local/api/webhook/(-<u32>)", LINKS),
        ("zapier_hook", 1, "https://hooks.zapier.com/hooks/catch/<d7>/(<l7>)/", LINKS),
        ("rapidapi", 2, "<h10>msh<h15>p1<h6>jsn<h12>", MARKED, "rapidapi key|x rapidapi key"),
        ("steam_web_api", 1, "<H32>", ASSIGNED, "steam api key"),
        ("spotify_client_secret", 2, "<h32>", ASSIGNED, "spotify client secret"),
        ("infura_link", 2, "https://mainnet.infura.io/v3/(<h32>)", LINKS),
        ("alchemy_link", 2, "https://eth-mainnet.g.alchemy.com/v2/(<u32>)", LINKS),
        ("etherscan", 1, "<U34>", ASSIGNED, "etherscan api key"),
    ),
    *sorts(
        "secret_jwt",
        ("jwt", 80, jwt, MARKED, "jwt|access token|id token|token|supabase service role key|auth token"),
        ("jwt_in_link", 8, jwt, ("-\nThe link was https://‹site›/verify?token=‹s› and it gives 500.", "\n‹time› GET /ws?access_token=‹s› 101")),
        ("jwt_kubernetes", 6, jwt, ("yaml\nusers:\n- name: sa\n  user:\n    token: ‹s›", "bash\nkubectl --token=‹s› get pods\nerror: timed out")),
        ("jwe", 3, jwe, MARKED, "session token|id token"),
    ),
    *sorts(
        "secret_url_password",
        ("postgres_url", 30, url("postgresql", "‹host›:5432/‹db›"), URLS),
        ("postgres_short_url", 10, url("postgres", "‹host›/‹db›?sslmode=require"), URLS),
        ("mysql_url", 12, url("mysql", "‹host›:3306/‹db›"), URLS),
        ("mongodb_url", 10, url("mongodb", "‹host›:27017/‹db›?authSource=admin"), URLS),
        ("mongodb_srv_url", 12, url("mongodb+srv", "cluster0.ab1cd.mongodb.net/‹db›?retryWrites=true"), URLS),
        ("redis_url", 14, url("redis", "‹host›:6379/0"), URLS),
        ("rediss_url", 2, url("rediss", "‹host›:6380"), URLS),
        ("amqp_url", 8, url("amqp", "‹host›:5672/%2f"), URLS),
        ("sqlalchemy_driver_url", 8, url("postgresql+asyncpg", "‹host›/‹db›"), URLS),
        ("pymysql_url", 4, url("mysql+pymysql", "‹host›/‹db›?charset=utf8mb4"), URLS),
        ("mssql_pyodbc_url", 3, url("mssql+pyodbc", "‹host›/‹db›?driver=ODBC+Driver+17"), URLS),
        ("password_with_at", 5, url("postgres", "‹host›/‹db›", at_password), URLS),
        ("https_basic_url", 10, url("https", "‹site›/api/jobs"), LINKS),
        ("git_url", 8, url("https", "git.kestrel.dev/core/marlin.git"), GIT_URLS),
        ("proxy_url", 8, url("http", "proxy.corp:3128"), PROXY_URLS),
        ("socks_proxy_url", 1, url("socks5", "‹host›:1080"), PROXY_URLS),
        ("ftp_url", 3, url("ftp", "‹host›/pub/a.zip"), LINKS),
        ("sftp_url", 1, url("sftp", "‹host›/in"), LINKS),
        ("smtp_url", 3, url("smtp", "‹host›:587"), URLS),
        ("rtsp_camera_url", 5, url("rtsp", "192.168.1.40:554/Streaming/Channels/101"), URLS),
        ("elasticsearch_url", 3, url("https", "‹host›:9200"), URLS),
        ("clickhouse_url", 2, url("clickhouse", "‹host›:9000/‹db›"), URLS),
        ("nats_url", 1, url("nats", "‹host›:4222"), URLS),
        ("couchdb_url", 1, url("http", "‹host›:5984/‹db›"), URLS),
        ("mqtt_url", 2, url("mqtt", "‹host›:1883"), URLS),
        ("registry_url", 2, url("https", "pypi.kestrel.dev/simple"), ("bash\npip install --extra-index-url ‹s› marlin", "ini\n[global]\nindex-url = ‹s›")),
        ("oracle_thin_slash", 2, lambda dice: (lambda p: (f"jdbc:oracle:thin:{dice.choice(USERS)}/{p}@//ora1:1521/XE", p))(random_password(dice)[0]), URLS),
    ),
    *sorts(
        "secret_authorization",
        ("basic_header", 26, lambda dice: (lambda v: (f"Basic {v}", v))(basic(dice)[1]), [*HEADERS, *HEADER_OBJECTS], "Authorization|authorization"),
        ("bearer_header", 30, one_of("Bearer (<w40>)", "Bearer (<u43>)", "Bearer (<h64>)", f"Bearer ({GUID})"), [*HEADERS, *HEADER_OBJECTS], "Authorization|authorization"),
        ("x_api_key_header", 16, one_of("<w32>", "<h40>", "<u43>"), [*HEADERS, *HEADER_OBJECTS], "X-API-Key|x-api-key|X-Api-Key"),
        ("token_scheme", 8, "Token (<h40>)", [*HEADERS, *HEADER_OBJECTS], "Authorization"),
        ("bare_authorization", 4, one_of("<w40>", "<h32>"), [*HEADERS, *HEADER_OBJECTS], "Authorization"),
        ("apikey_scheme", 4, "ApiKey (<b58>==)", [*HEADERS, *HEADER_OBJECTS], "Authorization"),
        ("x_auth_token", 6, one_of("<h32>", "gAAAAA<u180>"), [*HEADERS, *HEADER_OBJECTS], "X-Auth-Token|X-Access-Token"),
        ("proxy_authorization", 2, lambda dice: (lambda v: (f"Basic {v}", v))(basic(dice)[1]), HEADERS, "Proxy-Authorization"),
        ("subscription_key", 3, "<h32>", [*HEADERS, *HEADER_OBJECTS], "Ocp-Apim-Subscription-Key|x-functions-key|api-key"),
        ("vault_header", 2, "hvs.<u24>", HEADERS, "X-Vault-Token"),
        ("emby_header", 2, "<h32>", HEADERS, "X-Emby-Token|X-Plex-Token|X-MediaBrowser-Token"),
        ("splunk_scheme", 1, f"Splunk ({GUID})", HEADERS, "Authorization"),
        ("aws_signature", 2, "AWS4-HMAC-SHA256 Credential=x/20240311/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=(<h64>)", HEADERS, "Authorization"),
        ("digest_response", 1, 'Digest username="ci", realm="api", nonce="dcd98b", uri="/", response="(<h32>)"', HEADERS[:2], "Authorization"),
        ("negotiate", 1, "Negotiate (YII<b300>=)", HEADERS, "Authorization"),
        ("csrf_header", 2, one_of("<w32>", "<u86>=="), HEADERS, "X-CSRF-Token|X-XSRF-TOKEN"),
    ),
    *sorts(
        "secret_cookie",
        ("phpsessid", 14, "<l26>", COOKIES, "PHPSESSID"),
        ("jsessionid", 12, "<H32>", COOKIES, "JSESSIONID"),
        ("connect_sid", 10, "s%3A<u32>.(<w40>%2B<w2>)", COOKIES, "connect.sid"),
        ("django_sessionid", 10, "<l32>", COOKIES, "sessionid"),
        ("csrftoken", 3, "<w32>", COOKIES, "csrftoken"),
        ("flask_session", 8, signed_cookie, COOKIES, "session"),
        ("laravel_session", 6, laravel_cookie, COOKIES, "laravel_session"),
        ("aspnet_identity", 6, "CfDJ8<u300>", COOKIES, ".AspNetCore.Identity.Application|.AspNetCore.Cookies"),
        ("generic_session", 12, one_of("<h32>", "<u43>", GUID), COOKIES, "session_id|sid|auth|auth_token|_session_id|SESSION"),
        ("gitlab_session", 3, "<h32>", COOKIES, "_gitlab_session"),
        ("github_user_session", 3, "<u48>", COOKIES, "user_session|__Host-user_session_same_site"),
        ("google_psid", 4, "g.a000<u150>0076", COOKIES, "__Secure-1PSID|__Secure-3PSID"),
        ("youtube_sapisid", 2, "<u17>/A<u16>", COOKIES, "SAPISID|__Secure-3PAPISID"),
        ("wordpress_logged_in", 3, "admin%7C1767225600%7C<w43>%7C(<h64>)", COOKIES, "wordpress_logged_in_5c0f"),
        ("grafana_session", 2, "<h32>", COOKIES, "grafana_session"),
        ("jwt_cookie", 5, jwt, COOKIES, "token|access_token|sb-access-token"),
        ("cf_clearance", 2, "<u43>-1710144895-1.2.1.1-(<u120>)", COOKIES, "cf_clearance"),
        ("nextauth_session", 3, jwe, COOKIES, "next-auth.session-token|__Secure-next-auth.session-token"),
        ("rack_session", 2, "<b220>%3D%3D--(<h40>)", COOKIES, "_app_session|rack.session"),
        ("jsessionid_in_url", 2, "https://portal.kestrel.dev/home;jsessionid=(<H32>)?x=1", LINKS),
        ("proxmox_ticket", 1, "PVE%3Aroot@pam%3A65EE<H4>%3A%3A(<b340>)%3D%3D", COOKIES, "PVEAuthCookie"),
        ("twitter_auth_token", 2, "<h40>", COOKIES, "auth_token|ct0"),
        ("bilibili_sessdata", 2, "<h8>%2C1767225600%2C(<h5>%2Aa1CjA<u40>)", COOKIES, "SESSDATA"),
    ),
    *sorts(
        "secret_password",
        ("password_assigned", 40, env_password, ASSIGNED, "db password|password|postgres password|mysql root password|smtp pass|admin password|redis password|db pass|mail password|database password|passwd|pwd|keystore password|ldap bind password|minio root password|mqtt password"),
        ("password_in_place", 46, password, PASSWORD_ONLY),
        ("password_in_prose", 10, chosen, PASSWORD_PROSE),
        ("password_of_shell_user", 3, random_password, ("\n$ sudo useradd ‹user›2 && echo '‹s›' | passwd --stdin ‹user›2", "bash\nexpect -c 'spawn ssh ‹user›@‹host›; expect \"assword:\"; send \"‹s›\\r\"; interact'")),
        ("passphrase", 4, passphrase, ("yaml\nborg:\n  encryption_passphrase: \"‹s›\"", "bash\nexport RESTIC_PASSWORD=\"‹s›\"\nrestic snapshots", "bash\nssh-keygen -t ed25519 -N '‹s›' -f id", "ini\nWIFI_PASSPHRASE=\"‹s›\"")),
        ("kubernetes_data_base64", 4, encoded_password, ("yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: ‹db›\ndata:\n  password: ‹s›", "yaml\ndata:\n  username: YXBw\n  postgres-password: ‹s›")),
        ("htpasswd_hash", 3, one_of("$apr1$<w8>$(<w22>)", "$2y$10$(<w53>)"), ("\n# cat .htpasswd\n‹user›:‹s›", "yaml\nlabels:\n  - traefik.http.middlewares.a.basicauth.users=‹user›:‹s›")),
        ("shadow_hash", 2, "$6$<w16>$(<w86>)", ("\n# grep ‹user› /etc/shadow\n‹user›:‹s›:19700:0:99999:7:::", "yaml\nusers:\n  - name: ‹user›\n    passwd: ‹s›")),
        ("pin_code", 2, "<d6>", ("yaml\nalarm:\n  pin: ‹s›", "yaml\nhomekit:\n  pin_code: ‹s›", "-\nmy PIN is ‹s› and the panel shows an error")),
        ("one_time_password", 1, "<d6>", ("\nsms: your login code is ‹s›", "bash\nnpm publish --otp=‹s›")),
    ),
    *sorts(
        "secret_assignment",
        ("hex_secret", 20, one_of("<h32>", "<h40>", "<h64>"), ASSIGNED, "api key|secret key|app secret|auth token|encryption key|jwt secret|session secret|webhook secret|hmac key"),
        ("alnum_secret", 20, one_of("<w24>", "<w32>", "<w40>", "<w64>"), ASSIGNED, "api key|api secret|client secret|access token|token|private token|consumer secret|app key|signing key"),
        ("url64_secret", 10, one_of("<u32>", "<u43>", "<u64>"), ASSIGNED, "client secret|refresh token|api token|secret|auth secret|nextauth secret|bot secret"),
        ("base64_secret", 10, one_of("<b43>=", "<b86>==", "<b22>=="), ASSIGNED, "encryption key|master key|jwt secret|shared secret|cookie secret|secret key base"),
        ("uuid_secret", 5, GUID, ASSIGNED, "api key|access token|secret id|tenant secret|auth token"),
        ("django_secret_key", 5, "django-insecure-<l20>!<l8>^<l6>$<l12>", ASSIGNED[12:13] + ASSIGNED[:3], "secret key"),
        ("rails_secret_key_base", 4, "<h128>", ASSIGNED, "secret key base"),
        ("rails_master_key", 2, "<h32>", ASSIGNED, "rails master key"),
        ("laravel_app_key", 6, "base64:(<b43>=)", ASSIGNED[:4], "app key"),
        ("wordpress_salt", 2, "<u30>|<u12>{<u20>", ("php\ndefine('AUTH_KEY', '‹s›');", "php\ndefine('LOGGED_IN_SALT', '‹s›');")),
        ("totp_seed", 3, one_of("<t16>", "<t32>"), ("-\notpauth://totp/marlin:‹user›?secret=‹s›&issuer=marlin", *ASSIGNED[:8]), "totp secret|mfa secret|otp secret"),
        ("query_api_key", 6, one_of("https://api.kestrel.dev/v1/items?page=2&api_key=(<w32>)", "https://api.kestrel.dev/v1?access_token=(<w40>)", "https://feeds.kestrel.dev/rss?token=(<h32>)", "https://nas.local/api?apikey=(<h32>)"), LINKS),
        ("jupyter_link", 4, "http://127.0.0.1:8888/lab?token=(<h48>)", LINKS),
        ("kubeadm_join", 3, "<l6>.(<l16>)", ("bash\nkubeadm join 10.0.3.17:6443 --token ‹s› \\\n  --discovery-token-ca-cert-hash sha256:1f2e",)),
        ("docker_swarm_join", 1, "SWMTKN-1-<l50>-(<l25>)", ("bash\ndocker swarm join --token ‹s› 10.0.3.17:2377",)),
        ("k3s_node_token", 1, "K10<h64>::server:(<h32>)", ("bash\ncurl -sfL https://get.k3s.io | K3S_TOKEN=‹s› sh -", "yaml\ntoken: ‹s›\nserver: https://10.0.3.17:6443")),
        ("jenkins_api_token", 2, "11<h32>", ("bash\ncurl -u ‹user›:‹s› https://ci.kestrel.dev/job/a/build", *ASSIGNED[:6]), "jenkins token|jenkins api token"),
        ("ethereum_private_key", 4, one_of("0x<h64>", "<h64>"), ASSIGNED, "private key|deployer private key|wallet private key"),
        ("wallet_mnemonic", 3, mnemonic, ('env\nMNEMONIC="‹s›"\nINFURA=1', "js\nconst mnemonic = '‹s›';", "-\nMy seed phrase: ‹s›\n\nThe balance stays 0."), "mnemonic"),
        ("recovery_codes", 1, recovery_codes, ("-\nrecovery codes: ‹s›", "\nBackup codes:\n‹s›")),
        ("oauth_json_response", 6, one_of("<u43>", "<w64>", "<h64>"), ('json\n{\n  "access_token": "‹s›",\n  "token_type": "bearer",\n  "expires_in": 3600\n}', '\n‹time› DEBUG <-- 200 {"token_type":"Bearer","refresh_token":"‹s›","expires_in":3599}')),
        ("form_client_secret", 4, one_of("<w32>", "<u43>"), ("\nPOST /oauth/token HTTP/1.1\nHost: ‹site›\n\ngrant_type=client_credentials&client_id=marlin&client_secret=‹s›", "bash\ncurl -d 'grant_type=password&client_secret=‹s›&scope=all' https://‹site›/token")),
        ("authorization_code", 2, "https://app.kestrel.dev/callback?state=x1&code=(<u60>)", LINKS),
        ("ansible_vault_line", 1, "<d80>", ("yaml\ndb_password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  ‹s›",)),
        ("license_key", 2, "<U5>-<U5>-<U5>-<U5>-<U5>", ASSIGNED, "license key|activation key|product key"),
        ("home_assistant_api_key", 2, "<b43>=", ("yaml\napi:\n  encryption:\n    key: \"‹s›\"\n\nota:",)),
        ("bitcoin_rpc_or_wif", 1, "5<w50>", ASSIGNED, "wif|private key wif"),
        ("camel_unusual_name", 3, one_of("<w32>", "<h40>"), ASSIGNED, "my service creds|shared access key|integration key|ingest key|deploy key|x secret|bearer|hub signature secret|push token"),
    ),
    *sorts(
        "email",
        ("email_plain", 90, dotted_address, MAIL),
        ("email_of_digits", 6, number_address, MAIL),
        ("email_as_user_name", 6, dotted_address, ("yaml\nimap:\n  user: ‹s›\n  host: ‹host›", "bash\nssh -l ‹s› ‹site›", "env\nADMIN_EMAIL=‹s›\nPORT=80", "json\n{\"login\":\"‹s›\",\"scope\":[]}")),
    ),
]  # fmt: skip


# ---- Look-alikes --------------------------------------------------------------------------------------


def among(*values: str) -> Callable[[Dice], Body]:
    """One of these strings as they stand, bracket or not, with classes of characters drawn."""

    def body(dice: Dice) -> Body:
        value = dice.fill(dice.choice(values))
        return value, value

    return body


GIVEN_NAMES = "db password|password|api key|token|github token|secret key|access token|client secret"
SRI = "sha512-<b86>=="
LOOK_ALIKES = sorts(
    LOOK_ALIKE,
    ("placeholder_in_angles", 2, among("<your-token>", "<YOUR_API_KEY>", "<password>", "<redacted>", "<secret>"), ASSIGNED[:24], GIVEN_NAMES),
    ("placeholder_in_capitals", 2, among("YOUR_API_KEY", "YOUR_TOKEN_HERE", "REPLACE_ME", "YOUR_PASSWORD_HERE", "INSERT_TOKEN_HERE"), ASSIGNED, GIVEN_NAMES),
    ("masked", 2, among("********", "***", "xxxxxxxxxxxxxxxx", "[REDACTED]", "[FILTERED]", "••••••••"), ASSIGNED, GIVEN_NAMES),
    ("masked_with_mark", 1, among("ghp" "_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-" "...", "sk-" "xxxxxxxxxxxxxxxx", "glpat-" "********************"), MARKED, GIVEN_NAMES),
    ("reference_shell", 2, among("${DB_PASSWORD}", "$API_TOKEN", "$(cat /run/secrets/pw)", "${API_KEY:?missing}"), ASSIGNED[:24], GIVEN_NAMES),
    ("reference_actions", 2, among("${{ secrets.NPM_TOKEN }}", "${{ secrets.GITHUB_TOKEN }}", "${{ github.token }}"), ("yaml\n- run: npm publish\n  env:\n    NODE_AUTH_TOKEN: ‹s›", "yaml\n- uses: actions/checkout@v4\n  with:\n    token: ‹s›")),
    ("reference_template", 2, among("{{ vault_db_password }}", "{{ .Values.auth.password }}", "%(db_password)s", "{password}", "#{password}"), ASSIGNED[:24], GIVEN_NAMES),
    ("reference_terraform", 1, among("var.db_password", "data.vault_generic_secret.db.data.password", "random_password.db.result"), ("hcl\nresource \"db\" \"a\" {\n  password = ‹s›\n}",)),
    ("environment_lookup", 2, among("process.env.API_KEY", 'os.environ["API_KEY"]', 'os.getenv("DB_PASSWORD")', 'System.getenv("TOKEN")', 'ENV.fetch("SECRET_KEY")', "import.meta.env.VITE_API_KEY"), ("js\nconst token = ‹s›\nstart(token)", "python\napi_key = ‹s›\nclient = Client(api_key)", "ruby\npassword = ‹s›")),
    ("type_annotation", 2, among("password: str", "token: Optional[str]", "password: string;", "secret: &str", "apiKey?: string", "password String", "access_token: SecretStr"), ("ts\ninterface Options {\n  ‹s›\n}", "python\ndef login(user: str, ‹s›) -> None: ...", "rust\npub struct Login {\n    ‹s›\n}")),
    ("function_call", 2, among("getPassword()", "generate_token(user)", "secrets.token_hex(16)", "self.fetch_secret(name)", "crypto.randomBytes(32).toString('hex')", "Rails.application.credentials.secret_key_base"), ("python\ntoken = ‹s›\nassert token", "java\nString password = ‹s›;", "js\nconst secret = ‹s›;")),
    ("variable_passed_on", 2, among("token = self._token", "password = form.password.value", "apiKey: options.apiKey", "secret = args.secret", "password=password", "api_key=settings.API_KEY"), ("python\nclient.login(\n    ‹s›\n)", "js\nconst x = { ‹s› }")),
    ("null_value", 1, among("password: null", "token = None", "api_key: nil", 'secret = ""', "password: false", "token: undefined"), ("yaml\n‹app›:\n  ‹s›\n  port: 80", "\n‹time› ‹level› config ‹s›")),
    ("git_sha", 2, among("<h40>"), ("\ncommit ‹s›\nAuthor: M. K.\nDate: Mon Mar 11\n\n    fix parser", "bash\ngit bisect bad ‹s›\nBisecting: ‹number› revisions left", "-\nThis regressed in ‹s›, before that it worked.", "\n‹s› is the first bad commit")),
    ("git_index_line", 1, among("index <h7>..<h7> 100644"), ("diff\ndiff --git a/x.c b/x.c\n‹s›\n--- a/x.c\n+++ b/x.c",)),
    ("uuid", 2, among(GUID), ("\n‹time› ERROR request_id=‹s› status=500", "\ntrace id: ‹s›", "json\n{\"id\": \"‹s›\", \"state\": \"failed\"}", "\n/dev/disk/by-uuid/‹s› on / type ext4")),
    ("npm_integrity", 2, among(SRI), ('json\n"left-pad": {\n  "version": "‹version›",\n  "integrity": "‹s›"\n}', "yaml\n  /left-pad@‹version›:\n    resolution: {integrity: ‹s›}", 'html\n<script src="/a.js" integrity="‹s›" crossorigin="anonymous"></script>')),
    ("yarn_resolved", 1, among("left-pad-1.3.0.tgz#<h40>"), ('\nleft-pad@^1.3.0:\n  version "1.3.0"\n  resolved "https://registry.yarnpkg.com/left-pad/-/‹s›"',)),
    ("cargo_checksum", 1, among("<h64>"), ('toml\n[[package]]\nname = "serde"\nversion = "‹version›"\nchecksum = "‹s›"',)),
    ("pip_hash", 1, among("sha256:<h64>"), ("\nrequests==2.31.0 \\\n    --hash=‹s›", 'toml\nfiles = [\n    {file = "a.whl", hash = "‹s›"},\n]')),
    ("go_sum", 1, among("h1:<b43>="), ("\ngithub.com/pkg/errors v0.9.1 ‹s›\ngithub.com/pkg/errors v0.9.1/go.mod h1:bwawx",)),
    ("nix_hash", 1, among("sha256-<b43>=", "/nix/store/<z32>-glibc-2.38"), ("\nerror: hash mismatch in derivation\n  got: ‹s›", "\nlinked against ‹s›")),
    ("image_digest", 1, among("nginx@sha256:<h64>"), ("dockerfile\nFROM ‹s›\nRUN true", "\nStatus: Downloaded newer image for ‹s›")),
    ("container_id", 1, among("<h64>", "<h12>"), ("\n$ docker run -d ‹app›\n‹s›\n$ docker ps", "\nError response from daemon: container ‹s› is not running")),
    ("base64_image", 2, among("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA<b200>=="), ("css\n.logo { background: url(‹s›); }", "html\n<img src=\"‹s›\" />")),
    ("base64_font_or_map", 1, among("sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjoz<b160>"), ("js\nvar a=1;\n//# ‹s›",)),
    ("test_output", 2, among("tests/test_auth.py::test_token_refresh PASSED", "test password::verifies_hash ... ok", "✓ rejects a wrong password (12 ms)", "--- PASS: TestTokenExpiry (0.03s)"), ("\n‹s›\n1 failed, ‹number› passed in 3.21s",)),
    ("prose_on_passwords", 2, among("the password reset mail never arrives", "the password field stays empty after a refresh", "the access token is refreshed twice", "the secret is mounted as a file", "wrong password: expected an error message"), ("-\nSince the update ‹s›. Nothing else changed.", "-\nActual: ‹s›.")),
    ("prose_with_colon", 2, among("Password: required", "token: is missing in the response", "Password: must be at least 8 characters", "API key: see the settings page", "Secret: none"), ("-\n‹s›\n\nThat is all that it prints.", "\n‹time› ‹level› ‹s›")),
    ("parser_token", 2, among("Token(type=IDENT, value='foo')", "Unexpected token < in JSON at position 0", "unexpected token: SEMICOLON", "token = lexer.next_token();", "let token = self.bump();", "SyntaxError: Unexpected token 'export'"), ("\n‹s›\n    at line ‹number›", "rust\n‹s›\nparse(token)")),
    ("tokenizer_token", 1, among('"pad_token": "<pad>"', '"eos_token": "</s>"', 'pad_token_id=50256', "prompt_tokens=512", "max_tokens: 4096", '"unk_token": "[UNK]"', "tokens per second: 41.87"), ("json\n{\n  ‹s›\n}", "\n‹time› ‹level› ‹s›")),
    ("css", 2, among("color: #3b5998;", ".token.keyword { color: #07a; }", "content: \"\\f0c9\";", "--token-color-primary: #aabbccdd;"), ("css\n.panel {\n  ‹s›\n}",)),
    ("package_at_version", 2, among("left-pad@1.3.0", "react-dom@18.2.0", "@babel/core@7.23.9", "lodash@npm:4.17.21", "vite@5.0.0-beta.3"), ("\nnpm ERR! While resolving: ‹s›", "bash\nnpm install ‹s›", "\n├── ‹s›\n└── tslib@2.6.2")),
    ("rust_lifetime_or_path", 2, among("impl<'a> Token<'a> for Parser<'a>", "std::collections::hash_map::Entry", "&'static str", "core::ops::function::FnOnce::call_once", "rustc_span::symbol::kw::PathRoot", "password::Hasher::<Sha256>::new"), ("rust\nfn x() {\n    // ‹s›\n}", "\nerror[E0106]: missing lifetime specifier near ‹s›")),
    ("mangled_symbol", 1, among("_ZN4core3fmt9Formatter9write_str17h<h16>E", "_ZNSt6vectorIiSaIiEE9push_backERKi", "__Z12authenticatePKcS0_"), ("\n  3: 0x55d0c1f2 - ‹s›\n  4: 0x7f1a - main",)),
    ("minified_code", 2, among("!function(e,t){\"use strict\";var n=t.token,r=e.pwd||{};n.key=r.key}(window,a);", "var s=o.password,c=i.secret;return s&&c?u(s,c):l(e.token)", "e.exports=function(t){return t.apiKey=n(\"k3Jd\"),t}"), ("js\n‹s›", "\nUncaught TypeError: t is undefined\n‹s›")),
    ("stack_frame", 2, among("at Object.authenticate (/app/src/auth/token.js:12:5)", "at com.marlin.auth.PasswordEncoder.encode(PasswordEncoder.java:42)", 'File "/srv/app/auth/password.py", line 42, in check_password', "github.com/kestrel/marlin/auth.(*TokenStore).Get(0xc000123456)"), ("\nError: boom\n    ‹s›\n    at next (internal)",)),
    ("url_with_port", 2, among("http://localhost:8080/api/v1", "redis://localhost:6379/0", "postgres://db:5432/app", "https://10.0.3.17:8443/login?next=/home", "amqp://rabbit:5672"), ("\nlistening on ‹s›", "env\nBASE_URL=‹s›")),
    ("url_user_without_password", 1, among("ssh://git@git.kestrel.dev:2222/core/marlin.git", "git@github.com:kestrel/marlin.git", "https://ci@git.kestrel.dev/core/marlin.git", "postgres://app@db/orders"), ("\norigin  ‹s› (fetch)", "bash\ngit clone ‹s›")),
    ("url_reference_password", 1, among("postgres://app:${DB_PASSWORD}@db:5432/app", "https://${USER}:${TOKEN}@git.kestrel.dev/a.git", "mongodb://<user>:<password>@localhost:27017", "redis://:$REDIS_PASSWORD@cache:6379"), ("env\nDATABASE_URL=‹s›", "yaml\nurl: ‹s›")),
    ("url_with_at_in_path", 1, among("https://unpkg.com/react@18.2.0/umd/react.js", "https://cdn.jsdelivr.net/npm/vue@3.4.21/dist/vue.global.js", "https://medium.com/@somebody/post-1a2b3c4d5e6f"), ("html\n<script src=\"‹s›\"></script>", "-\nSee ‹s› for more.")),
    ("api_documentation", 2, among("password: required", "`token` (string, required)", "password (string): the new password", "api_key: type: string", "secret: optional, default none"), ("yaml\n# openapi\n‹s›", "-\n- ‹s›\n- `limit` (integer)")),
    ("java_object", 1, among("com.marlin.auth.Token@1b6d3586", "java.lang.Object@6d06d69c", "[Ljava.lang.String;@15db9742"), ("\n‹time› INFO token=‹s›", "\nexpected: ‹s›")),
    ("shell_prompt", 1, among("root@web-1:~#", "[deploy@build-7 app]$", "mara@thinkpad ~ %", "postgres@db:/$"), ("\n‹s› systemctl status ‹app›",)),
    ("retina_image_or_unit", 1, among("logo@2x.png", "getty@tty1.service", "icon@3x.webp", "user@1000.service"), ("\nFailed to load ‹s›",)),
    ("decorator_or_mention", 1, among("@pytest.fixture", "@Injectable()", "@octo-maintainer", "@media screen", "@types/node"), ("-\ncc ‹s› who changed it last.", "python\n‹s›\ndef x(): ...")),
    ("ssh_fingerprint", 1, among("SHA256:<b43>", "MD5:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>:<h2>"), ("\nED25519 key fingerprint is ‹s›.\nAre you sure you want to continue?",)),
    ("ssh_public_key", 1, among("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC<b360>=", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<b43>"), ("\n$ cat id.pub\n‹s›", "yaml\nssh_authorized_keys:\n  - ‹s›")),
    ("certificate", 1, lambda dice: pem("CERTIFICATE", b"\x30\x82\x03\x5b\x30\x82\x02", 800)(dice), ("\n‹s›", "yaml\nca: |\n  ‹s›")),
    ("public_key_pem", 1, lambda dice: pem("PUBLIC KEY", b"\x30\x82\x01\x22\x30\x0d\x06\x09", 280)(dice), ("\n‹s›",)),
    ("memory_address", 1, among("0x7ffee3b4a1c8", "0x00007f3c5d2e1000", "rax=0xdeadbeefcafebabe", "000000000040113a <main+0x14>"), ("\nsegfault at ‹s› ip 00 sp 00 error 4",)),
    ("hexdump", 1, among("00000010  7f 45 4c 46 02 01 01 00 <h2> <h2> <h2> <h2> <h2> <h2> <h2> <h2>"), ("\n‹s›  |.ELF....|",)),
    ("token_pattern", 1, among("gh" "p_[A-Za-z0-9]{36}", "(?i)password\\s*[:=]\\s*(\\S+)", "^sk-[a-zA-Z0-9]{20,}$", "AKIA[0-9A-Z]{16}"), ("yaml\nrules:\n  - regex: '‹s›'", "python\nPATTERN = re.compile(r\"‹s›\")")),
    ("login_error", 2, among('password authentication failed for user "postgres"', "Access denied for user 'root'@'localhost' (using password: YES)", "Bearer token is missing or malformed", "fatal: Authentication failed for", "invalid_grant: Token has been expired or revoked."), ("\nFATAL: ‹s›", "\n‹time› ERROR ‹s›")),
    ("html_input", 1, among('<input type="password" name="password" autocomplete="current-password">', '<label for="api_key">API key</label>', '<meta name="csrf-param" content="authenticity_token">'), ("html\n<form>\n  ‹s›\n</form>",)),
    ("sql_column", 1, among("password VARCHAR(255) NOT NULL", "token TEXT UNIQUE", "api_key CHAR(40) DEFAULT NULL", "ADD COLUMN secret bytea"), ("sql\nCREATE TABLE users (\n  id INT,\n  ‹s›\n);",)),
    ("translation", 2, among('"password": "Password"', '"forgot_password": "Forgot your password?"', '"password": "Passwort"', "token_expired: Your session has ended", '"secret": "Geheimnis"'), ("json\n{\n  ‹s›\n}",)),
    ("setting_near_passwords", 2, among("token_expiry=3600", "password_min_length: 8", "password_encryption = scram-sha-256", "auth: token", "token_type: bearer", "password_hashers = argon2", "secret_name: db-credentials", "api_key_header = X-API-Key", "PasswordAuthentication no", "token_endpoint_auth_method: client_secret_post"), ("ini\n[auth]\n‹s›", "yaml\nauth:\n  enabled: true\n\n‹s›")),
    ("secret_reference", 1, among("secretKeyRef:", "existingSecret: marlin-db", "key: password", "passwordSecretRef: db-root", "secretName: marlin-tls"), ("yaml\nenv:\n  - name: DB_PASSWORD\n    valueFrom:\n      x:\n        ‹s›",)),
    ("secret_file_path", 1, among("/run/secrets/db_password", "password_file: /etc/marlin/passwd", "~/.ssh/id_ed25519", "POSTGRES_PASSWORD_FILE=/run/secrets/pg", "key_file=/etc/ssl/private/server.key"), ("yaml\nsecrets:\n  - ‹s›", "bash\ncat ‹s›\nPermission denied")),
    ("etag", 1, among('W/"<h10>-<w27>"', '"<h32>"'), ("\nHTTP/1.1 200 OK\nETag: ‹s›\nCache-Control: no-cache",)),
    ("chunk_name", 1, among("main.<h8>.chunk.js", "index-<u8>.js", "vendors~app.<h20>.js"), ("\nChunkLoadError: Loading chunk 4 failed. (/static/js/‹s›)",)),
    ("harmless_cookie", 1, among("Set-Cookie: theme=dark; Path=/", "Cookie: lang=en; consent=1", "Set-Cookie: sid=; Max-Age=0"), ("\nHTTP/1.1 200 OK\n‹s›",)),
    ("header_name", 1, among("Access-Control-Allow-Headers: Authorization, X-Api-Key", "Authorization: Bearer <token>", "WWW-Authenticate: Basic realm=\"api\"", "Vary: Cookie, Authorization", "Authorization: Bearer $TOKEN"), ("\n< HTTP/1.1 401 Unauthorized\n< ‹s›",)),
    ("cloud_resource_name", 1, among("arn:aws:iam::123456789012:role/deploy", "projects/marlin-42/secrets/db-password/versions/3", f"/subscriptions/{GUID}/resourceGroups/x"), ("\nAccessDenied: not authorized to use ‹s›",)),
    ("key_of_keyboard_or_table", 1, among('key: "ArrowLeft"', "primary_key: user_id", "sort_key = created_at", 'key="menu-item-4"', "foreign_key: :account_id", "cache_key: npm-linux-x64-v2"), ("js\n// ‹s›\nfire(x)", "yaml\n‹s›")),
    ("enumeration", 1, among('PASSWORD = "password"', 'TokenKind::Password => "password"', "case apiKey", 'GRANT_TYPE = "client_credentials"', 'const TOKEN_HEADER = "X-Auth-Token"'), ("python\nclass Grant(Enum):\n    ‹s›",)),
    ("assembly_or_bytecode", 1, among("mov    rax, QWORD PTR [rbp-0x18]", "invokevirtual #42 // Method getToken:()Ljava/lang/String;", "ldr x0, [sp, #8]"), ("asm\n‹s›\nret",)),
    ("build_number", 1, among("1.2.3+g<h7>", "v20240311-<h8>", "Build 22631.3235"), ("-\nVersion: ‹s›", "\n‹app› ‹s› linux/amd64")),
    ("long_identifier", 1, among("TestAuthenticateWithExpiredTokenReturnsUnauthorized", "org.springframework.security.crypto.password.DelegatingPasswordEncoder", "kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly", "ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE"), ("\nFAILED ‹s›", "-\nIt stops in `‹s›`.")),
    ("crypto_constant", 1, among("0x6a09e667f3bcc908", "6a09e667 bb67ae85 3c6ef372 a54ff53a", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), ("c\nstatic const uint64_t K[] = { /* ‹s› */ };", "\nsha256sum: expected ‹s›")),
)  # fmt: skip


# ---- Issue texts --------------------------------------------------------------------------------------

TITLES = (
    "‹app› ‹version› hangs on start-up after the upgrade",
    "Crash when two workers write to the same file",
    "Sync stops after ‹number› items without an error",
    "Build fails on Windows with a path that has blanks",
    "Regression: connection pool is never drained",
    "Config is read twice, the second time with defaults",
    "Docs: the example in the quick start does not run",
    "Memory grows until the OOM killer comes",
    "Wrong time zone in the exported report",
    "Request: allow more than one endpoint",
)
SENTENCES = (
    "I upgraded from ‹version› yesterday and now it fails on each start.",
    "It works on my laptop but not on the server, with the same files.",
    "I expected it to retry, instead it exits with code ‹number›.",
    "This started about two weeks ago and happens on every second run.",
    "I could not find an open issue about this, sorry if it is a duplicate.",
    "The odd thing is that the first ‹number› requests go through.",
    "Downgrading helps, so I guess the change of the scheduler is to blame.",
    "Let me know which logs you need, I can reproduce it every time.",
    "With --verbose there is nothing more than what I paste below.",
    "We run it behind nginx, on three nodes, none of them shows load.",
    "A colleague sees the same on macOS with an M2.",
    "My guess is that the value is quoted twice somewhere on the way.",
    "Removing the cache folder makes no difference.",
    "Same as before with the nightly build from last Friday.",
    "Here is what I use, maybe I misread the documentation:",
    "I can open a pull request if somebody points me to the right place.",
)
BLOCKS = (
    '```\nTraceback (most recent call last):\n  File "/usr/lib/‹app›/cli.py", line ‹number›, in main\n    run(args)\n  File "/usr/lib/‹app›/pool.py", line 88, in run\n    raise TimeoutError(name)\nTimeoutError: worker-3\n```',
    "```\n‹time› ‹level› [‹app›] starting\n‹time› ‹level› [‹app›] 8 workers ready\n‹time› ERROR [‹app›] worker 3 exited: signal 9\n```",
    "```\nthread 'main' panicked at src/queue.rs:‹number›:14:\ncalled `Option::unwrap()` on a `None` value\nnote: run with RUST_BACKTRACE=1\n```",
    "```\njava.lang.IllegalStateException: closed\n\tat io.marlin.Pool.take(Pool.java:‹number›)\n\tat io.marlin.Main.main(Main.java:31)\n```",
    "```console\n$ ‹app› --version\n‹app› ‹version›\n$ uname -r\n6.5.0-27-generic\n```",
    "### Environment\n\n- OS: Ubuntu 22.04\n- ‹app›: ‹version›\n- Python 3.11",
    "**To reproduce**\n\n1. Start ‹app›\n2. Open the second tab\n3. Wait for a minute\n4. See the error",
    "### Expected\n\nIt goes on with the next item.\n\n### Actual\n\nIt stops and the process has to be killed.",
    "- [x] I searched the existing issues\n- [x] I use the latest version\n- [ ] I am willing to help",
    "| version | result |\n|---|---|\n| ‹version› | works |\n| main | fails |",
)
SLOT = re.compile(r"‹(\w+)›")


def fill_slots(dice: Dice, text: str, known: dict[str, str]) -> str:
    """The text with its slots filled; the same slot has the same word throughout."""

    def word(match: re.Match[str]) -> str:
        slot = match[1]
        if slot not in known and slot == "mark":
            known[slot] = dice.fill("<t16>")
        if slot not in known:
            known[slot] = dice.choice(SLOTS[slot])
        return known[slot]

    return SLOT.sub(word, text)


def name_slots(given: str) -> dict[str, str]:
    """The name in each style in which code and files write it."""
    words = given.lower().split()
    titles = "".join(word.title() for word in words)
    return {
        "given": given,
        "KEY": "_".join(words).upper(),
        "key": "_".join(words),
        "kebab": "-".join(words),
        "dotted": ".".join(words),
        "Pascal": titles,
        "camel": words[0] + titles[len(words[0]) :],
    }


def insert(carrier: str, shown: str) -> str:
    """The carrier with the credential in it; a block of several lines takes its place's indentation."""
    lines = []
    for line in carrier.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(line.replace("‹s›", shown.replace("\n", "\n" + indent)))
    return "\n".join(lines)


def present(dice: Dice, language: str, snippet: str) -> str:
    """The snippet as people paste it: mostly in a code block, at times bare, folded or quoted."""
    if language == "-":
        return snippet
    way = dice.weighted({"block": 64, "plain block": 12, "bare": 14, "folded": 6, "quoted": 4})
    if way == "bare":
        return snippet
    if way == "quoted":
        return "\n".join(f"> {line}" for line in snippet.split("\n"))
    block = f"```{'' if way == 'plain block' else language}\n{snippet}\n```"
    return f"<details>\n<summary>Log</summary>\n\n{block}\n\n</details>" if way == "folded" else block


def surround(dice: Dice, pasted: str, known: dict[str, str]) -> str:
    """An issue text about something else with the snippet pasted in."""
    parts = [" ".join(dice.sample(SENTENCES, dice.randint(1, 3))) for _ in range(dice.randint(1, 2))]
    parts += dice.sample(BLOCKS, dice.randint(1, 3))
    dice.shuffle(parts)
    parts.insert(dice.randint(1, len(parts)), "\0")
    whole = fill_slots(dice, "\n\n".join([dice.choice(TITLES), *parts]), known)
    return whole.replace("\0", pasted)


def plant_one(dice: Dice, sort: Sort) -> Planted:
    """One text in which the drawn string stands at one place only."""
    while True:
        shown, secret = draw(dice, sort.shape)
        known = name_slots(dice.choice(sort.given.split("|")))
        language, _, template = dice.choice(sort.carriers).partition("\n")
        snippet = fill_slots(dice, template.replace("‹s›", "\0"), known).replace("\0", "‹s›")
        text = surround(dice, present(dice, language, insert(snippet, shown)), known)
        if text.count(secret) == 1:
            return Planted(sort.kind, sort.name, secret, text)


def spread(dice: Dice, choices: Sequence[Sort], count: int) -> list[Sort]:
    """So many of the sorts in proportion to their weights: one draw from each equal share of the whole."""
    whole = sum(sort.weight for sort in choices)
    drawn, passed, at = [], 0.0, 0
    for share in range(count):
        mark = (share + dice.random()) / count * whole
        while at < len(choices) - 1 and passed + choices[at].weight < mark:
            passed += choices[at].weight
            at += 1
        drawn.append(choices[at])
    return drawn


def plant(seed: int, per_kind: int) -> Iterator[Planted]:
    """So many issue texts of each kind of credential, then as many look-alikes."""
    dice = Dice(seed)
    everything = [*KINDS_OF_CREDENTIAL, *LOOK_ALIKES]
    for kind in dict.fromkeys(sort.kind for sort in everything):
        for sort in spread(dice, [sort for sort in everything if sort.kind == kind], per_kind):
            yield plant_one(dice, sort)


def main() -> None:
    """Show one text of each finer name, or of those whose kind or name holds the given word."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    dice = Dice(1)
    for sort in [*KINDS_OF_CREDENTIAL, *LOOK_ALIKES]:
        if wanted in sort.kind or wanted in sort.name:
            planted = plant_one(dice, sort)
            print(f"==== {sort.kind} {sort.name}: {planted.secret}\n{planted.text}\n")


if __name__ == "__main__":
    main()
