"""Invented issue texts, each with a planted credential or with a look-alike that a scrubber must leave.

The texts are held-out material: they follow the documentation of key issuers and typical bug reports, and
were written without reading the scrubber. Every credential is random.

`planted_secrets.json` has the tables. A sort is [kind, name, weight, shape, carriers, names of the variable].
A shape is literal text with character classes, such as `<w36>` or `<h8-12>` (see `CLASSES`). If brackets
enclose a part, as in `https://host/(<u24>)`, this part is the secret, so that a scrubber which removes only
the beginning is noticed. A carrier is a template, whose first line is the language of its code block ("-" for
prose), or a list of templates: `NAME`, `NAME[1:4]`, `NAME*12`. ‹s› is the credential; ‹KEY›, ‹key›, ‹camel›,
‹Pascal›, ‹kebab› and ‹dotted› are the name of its variable; the other slots are words of `slots`.

    python benchmarks/planted_secrets.py [kind or name]  # print examples
"""

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
from pathlib import Path

TABLES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
WORDS = {name: words.split() for name, words in TABLES["words"].items()}
UPPER, LOWER, DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
ALNUM = DIGITS + UPPER + LOWER
CLASSES = {"w": ALNUM, "k": UPPER + LOWER, "A": UPPER, "a": LOWER, "d": DIGITS}
CLASSES |= {
    "l": LOWER + DIGITS,
    "U": UPPER + DIGITS,
    "h": DIGITS + "abcdef",
    "H": DIGITS + "ABCDEF",
}
CLASSES |= {
    "t": UPPER + "234567",
    "z": LOWER + "234567",
    "b": ALNUM + "+/",
    "u": ALNUM + "-_",
}
CLASS = re.compile(r"<([a-zA-Z])(\d+)(?:-(\d+))?>")
SLOT = re.compile(r"‹(\w+)›")
REFERENCE = re.compile(r"^(\w+)(?:\[(\d*):(\d*)\])?(?:\*(\d+))?$")
GUID = "<h8>-<h4>-4<h3>-a<h3>-<h12>"
SIGNS = "!@#$%^*-_+.?~"


@dataclass(frozen=True)
class Planted:
    """An issue text with one planted string."""

    kind: str
    name: str
    secret: str
    text: str


class Dice(random.Random):
    """A seeded source of bodies."""

    def of(self, alphabet: str, low: int, high: int = 0) -> str:
        """So many characters of the alphabet, between `low` and `high`."""
        return "".join(self.choices(alphabet, k=self.randint(low, max(low, high))))

    def fill(self, shape: str) -> str:
        """The shape with each class of characters drawn."""
        return CLASS.sub(
            lambda m: self.of(CLASSES[m[1]], int(m[2]), int(m[3] or 0)), shape
        )

    def weighted(self, choices: dict[str, int]) -> str:
        """One of the keys, in proportion to its value."""
        return self.choices(list(choices), weights=list(choices.values()))[0]


# What stands in the text, and the part of it that is the secret.
Body = tuple[str, str]
Draw = Callable[[Dice], str | Body]


def body(dice: Dice, drawn: Draw) -> Body:
    """What a shape draws; a single string is all secret."""
    found = drawn(dice)
    return (found, found) if isinstance(found, str) else found


def literal(shape: str) -> Draw:
    """Text with classes of characters in it; its brackets enclose the secret."""

    def draw(dice: Dice) -> str | Body:
        before, bracket, rest = dice.fill(shape).partition("(")
        if not bracket:
            return before
        secret, _, after = rest.partition(")")
        return before + secret + after, secret

    return draw


def one_of(*shapes: str) -> Draw:
    """Any of the shapes, with equal chance."""
    return lambda dice: literal(dice.choice(shapes))(dice)


def among(*values: str) -> Draw:
    """One of these strings as they stand, bracket or not, with classes of characters drawn."""
    return lambda dice: dice.fill(dice.choice(values))


def checked(prefix: str) -> Draw:
    """30 random characters and the base-62 CRC32 of them, as in tokens of GitHub and npm."""

    def draw(dice: Dice) -> str:
        middle = dice.of(ALNUM, 30)
        number, digits = zlib.crc32(middle.encode()), ""
        while number:
            number, rest = divmod(number, 62)
            digits = ALNUM[rest] + digits
        return prefix + middle + digits.rjust(6, "0")

    return draw


def url64(data: bytes) -> str:
    """Base64 for URLs without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def compact(value: object) -> bytes:
    """The value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def jwt(dice: Dice) -> Body:
    """A signed JSON web token; the secret is its signature."""
    size = {"HS256": 32, "HS512": 64, "ES256": 64, "EdDSA": 64, "RS256": 256}
    algorithm = dice.weighted(
        {"HS256": 50, "RS256": 35, "ES256": 8, "HS512": 4, "EdDSA": 3}
    )
    head: dict[str, object] = {"alg": algorithm, "typ": "JWT"}
    if algorithm != "HS256":
        head["kid"] = dice.fill("<h16>")
    issued = dice.randint(1_550_000_000, 1_760_000_000)
    claims: dict[str, object] = {
        "sub": dice.fill("<d4-10>"),
        "iat": issued,
        "exp": issued + 3600,
    }
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
    return (
        f"{head}..{url64(dice.randbytes(12))}.{cipher}.{url64(dice.randbytes(16))}",
        cipher,
    )


def wrapped(dice: Dice, start: bytes, size: int, width: int) -> Body:
    """Base64 lines of random bytes after the given start, and one of the inner lines."""
    encoded = base64.b64encode(start + dice.randbytes(size)).decode()
    lines = [encoded[i : i + width] for i in range(0, len(encoded), width)]
    return "\n".join(lines), dice.choice(lines[1:-1] or lines[:1])


def pem(label: str, start: bytes, size: int, width: int = 64, head: str = "") -> Draw:
    """A PEM block; the secret is one of its inner lines."""

    def draw(dice: Dice) -> Body:
        lines, secret = wrapped(dice, start, size + dice.randint(0, 3), width)
        return (
            f"-----BEGIN {label}-----\n{dice.fill(head)}{lines}\n-----END {label}-----",
            secret,
        )

    return draw


def escaped(name: str) -> Draw:
    r"""The block on one line with `\n` for each line break, as JSON and .env files hold it."""

    def draw(dice: Dice) -> Body:
        shown, secret = body(dice, NAMED[name])
        return shown.replace("\n", "\\n") + "\\n", secret

    return draw


def encoded(name: str) -> Draw:
    """The block in base64 once more, as kubeconfig files and CI variables hold it."""
    return lambda dice: base64.b64encode(
        body(dice, NAMED[name])[0].encode() + b"\n"
    ).decode()


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


def basic(dice: Dice) -> str:
    """User and password in base64."""
    return base64.b64encode(
        f"{dice.choice(TABLES['slots']['user'])}:{password(dice)}".encode()
    ).decode()


def basic_header(dice: Dice) -> Body:
    """User and password in base64 behind its scheme."""
    value = basic(dice)
    return f"Basic {value}", value


def chosen(dice: Dice) -> str:
    """A password as people choose it: words with digits and signs, or leet."""
    word, other = dice.sample(WORDS["common"] + WORDS["rare"], 2)
    year, sign = dice.randint(1970, 2026), dice.choice("!@#$%*_.?-")
    swapped = word.translate(str.maketrans("aeiost", "@310$7"))
    capital = swapped[:1].upper() if swapped[:1].isalpha() else "x"
    return dice.choice(
        [
            f"{word}{dice.randint(1, 999)}",
            f"{word.title()}{year}",
            f"{word.title()}{year}{sign}",
            f"{word.title()}{sign}{dice.randint(1, 9999)}",
            f"{word}{sign}{other}",
            f"{word.title()}{other.title()}{dice.randint(1, 99)}",
            f"P{swapped}{dice.randint(10, 99)}",
            f"{capital}{swapped[1:]}{sign}{dice.randint(1, 999)}",
            f"{word}-{other}-{dice.choice(WORDS['rare'])}-{dice.randint(1, 99)}",
            f"{word}_{other}_{year}",
            f"{dice.of(LOWER, 2)}{dice.of(DIGITS, 4, 6)}{dice.of(LOWER, 2)}",
            f"qwe{dice.of(DIGITS, 3)}ASD{sign}",
        ]
    )


def random_password(dice: Dice) -> str:
    """12 to 24 random characters as a password manager makes them, with or without signs."""
    alphabet = dice.choice([ALNUM, ALNUM, ALNUM + SIGNS])
    return dice.of(ALNUM, 1) + dice.of(alphabet, 11, 23)


def plain_word(dice: Dice) -> str:
    """A dictionary word alone."""
    return dice.choice(WORDS["common"] + WORDS["rare"])


def password(dice: Dice) -> str:
    """Half chosen by people, half by a machine."""
    return dice.choice([chosen, random_password])(dice)


def env_password(dice: Dice) -> str:
    """As `password`, with plain words among them, which only a name such as PASSWORD gives away."""
    return dice.choices([chosen, random_password, plain_word], weights=[45, 35, 20])[0](
        dice
    )


def url_password(dice: Dice) -> str:
    """A password that stands in a URL: signs are percent-encoded, or do no harm."""
    if dice.random() < 0.15:
        word = dice.choice(WORDS["common"]).title()
        return (
            f"{word}{dice.choice(['%40', '%23', '%21', '%2F'])}{dice.of(ALNUM, 3, 8)}"
        )
    return re.sub(r"[@#?%/^]", lambda _: dice.choice("!-_.~$*"), env_password(dice))


def at_password(dice: Dice) -> str:
    """A password with a raw `@` in it, which people write into URLs all the same."""
    return f"{dice.choice(WORDS['common']).title()}@{dice.of(ALNUM, 3, 8)}"


def passphrase(dice: Dice) -> str:
    """Four words with spaces or hyphens."""
    return dice.choice([" ", "-", "."]).join(dice.sample(WORDS["rare"], 4))


def dotted_address(dice: Dice) -> str:
    """An e-mail address of nobody."""
    first, last = dice.choice(WORDS["first"]), dice.choice(WORDS["last"])
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
    return f"{local}@{dice.weighted(TABLES['mail'])}"


def wireguard(dice: Dice) -> str:
    """A clamped Curve25519 key in base64."""
    key = bytearray(dice.randbytes(32))
    key[0] &= 248
    key[31] = key[31] & 127 | 64
    return base64.b64encode(bytes(key)).decode()


def pypi(dice: Dice) -> str:
    """An upload token of PyPI: a macaroon in base64."""
    inner = (
        f'{{"version": 1, "permissions": "user", "id": "{dice.fill(GUID)}"}}'.encode()
    )
    start = b"\x02\x01\x08pypi.org\x02\x24"
    return "pypi-" + url64(
        start + dice.fill(GUID).encode() + b"\x00\x02\x2a" + inner + dice.randbytes(40)
    )


def grafana_cloud(dice: Dice) -> str:
    """A Grafana Cloud access policy token."""
    inner = {
        "o": dice.fill("<d6>"),
        "n": "ci",
        "k": dice.fill("<w24>"),
        "m": {"r": "eu"},
    }
    return "glc_" + base64.b64encode(compact(inner)).decode()


def signed_cookie(dice: Dice) -> Body:
    """A payload, a time and a signature, as Flask and Django write them."""
    signature = dice.fill("<u27>")
    return (
        f"{url64(compact({'_user_id': dice.fill('<d3>')}))}.{dice.fill('Z<u5>')}.{signature}",
        signature,
    )


def laravel_cookie(dice: Dice) -> str:
    """An encrypted payload in base64, percent-encoded at its end."""
    inner = {
        "iv": dice.fill("<b22>=="),
        "value": dice.fill("<b64>"),
        "mac": dice.fill("<h64>"),
        "tag": "",
    }
    return base64.b64encode(compact(inner)).decode().rstrip("=") + "%3D"


def recovery_codes(dice: Dice) -> Body:
    """Backup codes of a second factor; the secret is the last."""
    codes = [dice.fill("<h5>-<h5>") for _ in range(4)]
    return " ".join(codes), codes[-1]


def oracle_thin(dice: Dice) -> Body:
    """A JDBC URL with the password behind a slash."""
    value = random_password(dice)
    return (
        f"jdbc:oracle:thin:{dice.choice(TABLES['slots']['user'])}/{value}@//ora1:1521/XE",
        value,
    )


def url(scheme: str, tail: str, inner: str = "url_password") -> Draw:
    """A URL with user and password."""

    def draw(dice: Dice) -> Body:
        value = body(dice, NAMED[inner])[1]
        user = (
            ""
            if scheme == "redis" and dice.random() < 0.6
            else dice.choice(TABLES["slots"]["user"])
        )
        return f"{scheme}://{user}:{value}@{fill_slots(dice, tail, {})}", value

    return draw


# Shapes that the tables name, beside the functions above.
NAMED: dict[str, Draw] = {
    "RSA": pem(
        "RSA PRIVATE KEY", b"\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01\x00", 1180
    ),
    "PKCS8": pem(
        "PRIVATE KEY", b"\x30\x82\x04\xbd\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48", 1200
    ),
    "EC": pem("EC PRIVATE KEY", b"\x30\x77\x02\x01\x01\x04\x20", 114),
    "OPENSSH": pem(
        "OPENSSH PRIVATE KEY", b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none", 350, 70
    ),
    "LOCKED": pem(
        "RSA PRIVATE KEY",
        b"",
        1190,
        head="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,<H32>\n\n",
    ),
    "PGP": pem("PGP PRIVATE KEY BLOCK", b"\x95\x05\x86\x04", 1400, head="\n"),
    "certificate": pem("CERTIFICATE", b"\x30\x82\x03\x5b\x30\x82\x02", 800),
    "public_key": pem("PUBLIC KEY", b"\x30\x82\x01\x22\x30\x0d\x06\x09", 280),
    "mnemonic": lambda dice: " ".join(dice.sample(WORDS["seed"], 12)),
    "age": lambda dice: (
        "AGE-SECRET-" + "KEY-1" + dice.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)
    ),
    "openai_json": lambda dice: (
        f"sk-{dice.choice(['proj', 'svcacct', 'admin'])}-"
        + dice.fill("<u74>T3BlbkFJ<u74>")
    ),
    "aws_session": lambda dice: (
        dice.choice(["IQoJb3JpZ2luX2Vj", "FwoGZXIvYXdzE"])
        + dice.of(CLASSES["b"], 320, 900)
        + "=="
    ),
    "npg": lambda dice: "npg_" + dice.of(ALNUM, 12),
    "number_address": lambda dice: (
        dice.fill("<d8-10>") + "@" + dice.choice(["qq.com", "163.com", "naver.com"])
    ),
    "encoded_password": lambda dice: base64.b64encode(password(dice).encode()).decode(),
}
FUNCTIONS: tuple[Draw, ...] = (
    jwt, jwe, putty, basic, basic_header, chosen, random_password, password, env_password,
    url_password, at_password, passphrase, dotted_address, wireguard, pypi, grafana_cloud,
    signed_cookie, laravel_cookie, recovery_codes, oracle_thin,
)  # fmt: skip
NAMED |= {function.__name__: function for function in FUNCTIONS}
MAKERS: dict[str, Callable[..., Draw]] = {
    "as": NAMED.__getitem__,
    "one of": one_of,
    "among": among,
    "checked": checked,
    "escaped": escaped,
    "encoded": encoded,
    "url": url,
}


@dataclass(frozen=True)
class Sort:
    """One finer name."""

    kind: str
    name: str
    weight: float
    shape: str | dict[str, list[str]]
    carriers: Sequence[str]
    given: str = "token|api key|access token|auth token|secret"

    def draw(self, dice: Dice) -> Body:
        """A body of the shape."""
        if isinstance(self.shape, str):
            return body(dice, literal(self.shape))
        ((maker, arguments),) = self.shape.items()
        return body(dice, MAKERS[maker](*arguments))


def carriers(entries: Sequence[str]) -> Iterator[str]:
    """The templates of the entries, of which some are named lists of them."""
    for entry in entries:
        if "\n" in entry:
            yield entry
            continue
        ((name, low, high, times),) = REFERENCE.findall(entry)
        part = TABLES["carriers"][name][int(low or 0) : int(high) if high else None]
        yield from part * int(times or 1)


SORTS = [
    Sort(kind, name, weight, shape, tuple(carriers(entries)), *given)
    for kind, name, weight, shape, entries, *given in TABLES["sorts"]
]


def fill_slots(dice: Dice, text: str, known: dict[str, str]) -> str:
    """The text with its slots filled; the same slot has the same word throughout."""

    def word(match: re.Match[str]) -> str:
        slot = match[1]
        if slot not in known:
            known[slot] = (
                dice.fill("<t16>")
                if slot == "mark"
                else dice.choice(TABLES["slots"][slot])
            )
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
    way = dice.weighted(
        {"block": 64, "plain block": 12, "bare": 14, "folded": 6, "quoted": 4}
    )
    if way == "bare":
        return snippet
    if way == "quoted":
        return "\n".join(f"> {line}" for line in snippet.split("\n"))
    block = f"```{'' if way == 'plain block' else language}\n{snippet}\n```"
    return (
        f"<details>\n<summary>Log</summary>\n\n{block}\n\n</details>"
        if way == "folded"
        else block
    )


def surround(dice: Dice, pasted: str, known: dict[str, str]) -> str:
    """An issue text about something else with the snippet pasted in."""
    parts = [
        " ".join(dice.sample(TABLES["sentences"], dice.randint(1, 3)))
        for _ in range(dice.randint(1, 2))
    ]
    parts += dice.sample(TABLES["blocks"], dice.randint(1, 3))
    dice.shuffle(parts)
    parts.insert(dice.randint(1, len(parts)), "\0")
    whole = fill_slots(
        dice, "\n\n".join([dice.choice(TABLES["titles"]), *parts]), known
    )
    return whole.replace("\0", pasted)


def plant_one(dice: Dice, sort: Sort) -> Planted:
    """One text in which the drawn string stands at one place only."""
    while True:
        shown, secret = sort.draw(dice)
        known = name_slots(dice.choice(sort.given.split("|")))
        language, _, template = dice.choice(sort.carriers).partition("\n")
        snippet = fill_slots(dice, template.replace("‹s›", "\0"), known).replace(
            "\0", "‹s›"
        )
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
    for kind in dict.fromkeys(sort.kind for sort in SORTS):
        for sort in spread(
            dice, [sort for sort in SORTS if sort.kind == kind], per_kind
        ):
            yield plant_one(dice, sort)


def main() -> None:
    """Show one text of each finer name, or of those whose kind or name holds the given word."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    dice = Dice(1)
    for sort in SORTS:
        if wanted in sort.kind or wanted in sort.name:
            planted = plant_one(dice, sort)
            print(f"==== {sort.kind} {sort.name}: {planted.secret}\n{planted.text}\n")


if __name__ == "__main__":
    main()
