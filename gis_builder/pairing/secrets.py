"""Replace credentials, e-mail addresses and names of people, which public issues do contain.

`secrets.toml` has the shapes of credentials; tests decide whether a value of such a shape is a placeholder. Of
a name, only its form and the words around it count, so a text doesn't depend on the rest of its tracker.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from gis_builder.detection.issue_references import edited
from gis_builder.detection.lexicon import filled
from pairkit.base.printable import comparable

_RANDOM_BITS = 3.2  # entropy per character; prose and identifiers are mostly below
_EXAMINED = 512  # characters of a value that are searched for signs of a placeholder

# "xxxxxx", "****", "...", "your-key"
_PLACEHOLDER = re.compile(
    r"x{4}|\*{3}|\.{3}|•|…|example|placeholder|(?<![A-Za-z0-9])your|your[-_]|redacted"
    r"|(?:change|replace)[-_]?(?:me|it)|removed|dummy|(?<![A-Za-z0-9])(?:my|some|the)[-_]?(?:pass|secret|token|key)",
    re.IGNORECASE,
)
# Expressions in programs: "${TOKEN}", "<token>", "%s", "&str", "[secret]", "get(", "Option<"; also paths:
# "/home", "C:\\Users", "main.rs".
_EXPRESSION = re.compile(
    r"#?[<{\[(&/\\]|\$[A-Za-z_{(]|%[(sd{]|~/|[*@][A-Za-z_]+$|[=:|!]+$|[A-Za-z]:[/\\]|[\w.]*\w[(\[{<]|0x[0-9a-f]+$"
    r"|[\w.-]+\.[A-Za-z]{1,4}[.,;:]?$"
)
# Names in programs: "settings.PASSWORD", "std::string", "get_password", "userPassword".
_NAME = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+|_*[A-Za-z]+(?:_[A-Za-z]+)+_*|[a-z]+(?:[A-Z][a-z]+)+"
)
# Quoted names of secrets: "db_password", "userToken", "settings.api_key".
_ABOUT_SECRETS = re.compile(
    r"pass|pwd|secret|token|key|user|login|auth|cred|value|field|input|env|hash|config|setting|get|set|is|has",
    re.IGNORECASE,
)
# Words after "password:" in code, forms and logs that aren't passwords; the last lines have other languages.
_WORDS = re.compile(
    r"and|any|bool|boolean|bytes|char|default|disabled|email|empty|enabled|encrypted|expired|false|field|fixed"
    r"|for|from|hash|hidden|incorrect|input|int|invalid|key|login|missing|nil|none|null|number|off|optional|pass"
    r"|passphrase|passwd|password|plaintext|prompt|pwd|required|reset|secret|str|string|text|the|token|true|type"
    r"|undefined|unknown|unset|user|username|usize|value|varchar|void|with|wrong|works|fails|passed|failed|same"
    r"|passwort|kennwort|contraseña|contrasena|senha|wachtwoord|lösenord|hasło|heslo|parola|пароль|密码|密碼|パスワード"
    r"|falsch|leer|vergessen|(?:in)?correct[oa]|inv[aá]lid[oa]|requerid[oa]|obrigat\w+|requis|vide|oublié"
    r"|errat[oa]|sbagliat[oa]|błędne|yanlış|onjuist|vereist",
    re.IGNORECASE,
)
# Words and short numbers joined by signs: "bert-base-uncased-v2", "models/2020/01".
_JOINED_WORDS = re.compile(
    r"(?:(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,4}|[a-z]{1,4}[0-9]{1,3})(?:[-_/.]|$))+"
)
_NOT_A_WORD = re.compile(r"[0-9]|[a-z][A-Z]")
_LONG_HEX = re.compile(r"[0-9a-f]{32}")
_PIECE = re.compile(r"[A-Za-z0-9_-]{10,}")
_PUNCTUATION = ".,;:)]}"  # may follow a value
_HEX_BITS = 4.0  # maximum entropy of hexadecimal digits

# In HTML, in addresses, in JSON, in Markdown; other forms of Unicode
_ENCODED = re.compile(
    r"&(?:[a-z]{2,6}|#\d{2,5}|#x[0-9a-f]{1,5});|(?:%|\\u00)(?:2[02-7f]|3[abdef]|40)|[^\x00-\x7f]+"
    r"|(?<=[\w-])\*\*(?=[\w-])|\\(?=_)",
    re.IGNORECASE,
)

# "Ann Lee <[email]>": up to four words with capitals, or a name in a script without them; Jira's "[~ann]".
_PERSON = re.compile(
    r"(?<![\w.'-])(?!(?:Authors?|Bcc|By|Cc|CC|Contact|Email|From|Mail|Maintainer|Thanks|To)\b)"
    r"(?:(?:[A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΩА-Я][\w.'’-]{0,40}[ \t]{1,3}){0,3}[A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΩА-Я][\w.'’-]{0,40}"
    r"|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{2,10})(?=[ \t]{0,3}<\[email\]>)"
    r"|(?<=\[~)(?!user\])(?:accountid:)?[\w.@:+-]{1,100}(?=\])"
)

# Words after `@` in programs; in other words, such as `@Trait`, the words around decide.
_PROGRAM_WORDS = """
    abstract after all and api apply arg args async author autowired available await bean before binding
    body builder charset class code column component config const context controller data dataclass
    decorator default deprecated directive else embeddable entity enum environment escaping example export
    extend extends field file final fixture flow font for function generated get getter given header hook
    id if ignore import include inject injectable inline input instance interface internal jest keyframes
    latest layer layout lazy link list listener local main mainactor manytoone map mark media method mixin
    mock module mut name namedqueries namespace next nonnull not notnull null nullable observable
    onetomany option options or output overload override package page param parameter patch path plugin
    post preauthorize private prop property props protected provide public published put query react
    readonly register repository request requestmapping required rest restcontroller return returns root
    route schema screen see self service setter signal singleton state static staticmethod super supports
    suppresswarnings table tag tailwind task template test testable then this throws todo trait
    transactional try type types unique unit use value var version view viewbuilder viewchild void when
    with
"""
_PROGRAM = "|".join(_PROGRAM_WORDS.split())
# An address, a hash, `@scope/package`, `@Annotation(…)` and `@module.name` aren't names of people.
_LOGIN = (
    rf"(?<![A-Za-z0-9_@./`])@(?!(?i:0x|[0-9a-f]{{7,40}}\b|(?:{_PROGRAM}|user)(?![\w-])))"
    r"(?a:[A-Za-z0-9][\w-]{0,38}(?![\w/(\[{=<@-]|[.:]\w))"
)
_LOGINS = rf"{_LOGIN}(?:(?:[ \t]{{0,3}}[,;/&]|[ \t]+and|[ \t]+or){{0,2}}[ \t]{{1,3}}{_LOGIN}){{0,20}}"
# Words before or after the names of people only, and words that need a name unlike `@JsonIgnore`.
_TO_PEOPLE = r"""
    (?:\b(?i:/?cc|ping|h/t|hat[ ]tip|thanks|thanks[ ]to|thank[ ]you|thx|credits?[ ]to|goes[ ]to|according[ ]to
    |assign(?:ed|ing)?[ ]to|hi|hello|hey|dear|fyi|per|on[ ]behalf[ ]of|im[ ]auftrag[ ]von|danke|merci|gracias
    |obrigado|спасибо|(?:example|idea|update|words)[ ]from|help(?:ing)?[ ]out
    |(?:spoken?|talk(?:ed|ing)?|discuss(?:ed|ing)|chatt(?:ed|ing))\b[^\n@.]{0,30}?\b(?:with|to)
    |(?:amended|asked|authored|discovered|edit|maintained|mentioned|noted|noticed|observed|pointed[ ]out
    |posted|proposed|raised|reported|requested|said|spotted|suggested|updated?|written)[ -]by)[.:,]?[ \t]+
    |\((?:by|from)[ ]|(?:感谢|谢谢)[ \t]*)
"""
_TO_PEOPLE_OR_NAMES = r"""
    \b(?i:via|patch[ ]for|irc|(?:caused|created|done|fixed|found|implemented|introduced|made)[ ]by)[ \t]+
"""
_SAID_OF_PEOPLE = r"""
    (?i:[ \t]+(?:(?:also|just|already|recently|has|had|have)[ ]){0,2}
    (?:asked|believes|clued|commented|confirmed|discovered|expressed|indicated|knows|laid|mentioned|noted|noticed
    |pointed|posted|proposed|recommended|replied|reported|requested|said|says|suggested|suggests|thinks|thought
    |told|wants|wanted|wondered|wrote)\b
    |[ \t]+(?:seems?[ ]to[ ]think|to[ ]implement
    |is[ ]well[ ]aware|was[ ]convinced|and[ ]I|on[ ]\w{3,9}[ ][0-9]{1,2}|fyi)\b
    |[ \t]+\^\^)
"""
_SAID_OF_PEOPLE_OR_NAMES = r"""
    (?i:'s[ ]|[ \t]+(?:(?:has|had|have|already)[ ])?(?:explained|fixed|found|helped|might)\b
    |[ \t]+(?-i:Are|Can|Could|Did|Do|Does|How|Is|Should|What|Why|Will|Would)\b
    |[ \t]{0,2}[,:]?[ \t]{1,3}(?:you|your|yours|(?:can|could|would|do)[ ]you|(?:could|does|is)[ ]this
    |are[ ]there|any|please|what|why|how|let[ ]me|regarding|thanks|I|I'm|I've|if[ ]you|sorry)\b)
"""
_NO_HUMP = r"(?!@\w{0,38}[a-z][A-Z]|@ts-)"
_MENTION = re.compile(
    rf"(?P<code>`[^`\n]*`|^(?:[ ]{{4}}|\t)[^\n]*)|{_TO_PEOPLE}{_LOGINS}|{_LOGINS}(?={_SAID_OF_PEOPLE})"
    rf"|{_TO_PEOPLE_OR_NAMES}{_NO_HUMP}{_LOGINS}|{_NO_HUMP}{_LOGINS}(?={_SAID_OF_PEOPLE_OR_NAMES})"
    rf"|(?:--|^)[ \t]*{_NO_HUMP}{_LOGINS}[ \t]*+(?=\n[ \t]*\n|\s*+\Z)",
    re.MULTILINE | re.VERBOSE,
)


def _is_placeholder(value: str) -> bool:
    start = value[:_EXAMINED]
    return _PLACEHOLDER.search(start) is not None or len(set(start)) < 3


def looks_random(value: str) -> bool:
    """Whether the value has letters, digits and high entropy, and is not words joined by signs."""
    return _has_digit(value) and any(c.isalpha() for c in value) and _has_entropy(value)


def looks_keyed(value: str) -> bool:
    """As `looks_random`, after a clear prefix or name: letters of both cases suffice instead of digits."""
    return (_has_both_cases(value) or _has_digit(value)) and _has_entropy(value)


def is_no_word(value: str) -> bool:
    """Whether the value has a digit or a capital after a small letter, and is not a placeholder."""
    return _NOT_A_WORD.search(value) is not None and not _is_placeholder(value)


def looks_mixed(value: str) -> bool:
    """As `looks_random`, with letters of both cases and more entropy than a hexadecimal hash."""
    return _has_both_cases(value) and looks_random(value) and _bits(value) >= _HEX_BITS


def looks_mixed_or_long(value: str) -> bool:
    """As `looks_mixed`, or with 32 hexadecimal digits in a row."""
    return looks_mixed(value) or (
        _LONG_HEX.search(value) is not None and not _is_placeholder(value)
    )


def holds_random(value: str) -> bool:
    """Whether a part of ten characters or more looks random, unlike a cookie with a setting."""
    return any(
        looks_keyed(piece) and is_no_word(piece) for piece in _PIECE.findall(value)
    )


def could_be_password(value: str) -> bool:
    """Whether a value is not a placeholder, type, name or expression."""
    return _could_be(value) and not _NAME.fullmatch(value.rstrip(_PUNCTUATION))


def could_be_literal(value: str) -> bool:
    """As `could_be_password`, for quoted values: these may look like names that aren't about secrets."""
    is_name = (
        _NAME.fullmatch(value) is not None and _ABOUT_SECRETS.search(value) is not None
    )
    return _could_be(value) and not is_name


def is_hard_password(value: str) -> bool:
    """As `could_be_password`, for prose and code: it must have a letter, and a digit or sign inside."""
    has_letter = any(c.isalpha() for c in value)
    core = value.strip(".:,;!?'-")
    return (
        has_letter and any(not c.isalpha() for c in core) and could_be_password(value)
    )


def _could_be(value: str) -> bool:
    is_word = _WORDS.fullmatch(value.rstrip(_PUNCTUATION)) is not None
    return not is_word and not _is_placeholder(value) and not _EXPRESSION.match(value)


def _has_digit(value: str) -> bool:
    return any(c.isdigit() for c in value)


def _has_both_cases(value: str) -> bool:
    return value not in (value.lower(), value.upper())


def _has_entropy(value: str) -> bool:
    return (
        not (_is_placeholder(value) or _JOINED_WORDS.fullmatch(value))
        and _bits(value) >= _RANDOM_BITS
    )


def _bits(value: str) -> float:
    """Entropy per character."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


class Shape(NamedTuple):
    """One shape of a kind of credential."""

    kind: str
    gates: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] | None


_TESTS = {
    test.__name__: test for test in (
        could_be_literal, could_be_password, holds_random, is_hard_password, is_no_word, looks_keyed,
        looks_mixed, looks_mixed_or_long, looks_random,
    )
}  # fmt: skip
_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KINDS: dict[str, str] = _DATA["kinds"]
SHAPES = [
    Shape(
        group["kind"],
        tuple(filled(shape["gates"], _DATA["parts"]).split()),
        re.compile(filled(shape["pattern"], _DATA["parts"]), re.VERBOSE),
        _TESTS[shape["test"]] if "test" in shape else None,
    )
    for group in _DATA["credentials"]
    for shape in group["shapes"]
]
_GATES = tuple({gate for shape in SHAPES for gate in shape.gates})


def scrub_secrets(text: str) -> tuple[str, dict[str, int]]:
    """Replace credentials by `[secret]` and e-mail addresses by `[email]`; also return counts by kind.

    A line with a credential that is encoded, such as `password=&quot;…`, is decoded.
    """
    return _scrub("\n".join(map(_decoded_if_secret, text.split("\n"))))


def _decoded_if_secret(line: str) -> str:
    """The line decoded, if more of it is secret then."""
    plain = _ENCODED.sub(_decoded, line)
    if plain == line:
        return line
    return max(
        line,
        plain,
        key=lambda form: len(form) - len(_scrub(form)[0].replace("[secret]", "")),
    )


def _decoded(sign: re.Match[str]) -> str:
    """The character that is meant; none for signs that only split words."""
    character = unescape(unquote(sign[0].replace(r"\u00", "%")))
    return comparable(character).strip("*\\")


def _scrub(text: str) -> tuple[str, dict[str, int]]:
    counts = Counter[str]()
    lower = text.lower()
    present = {gate for gate in _GATES if gate in lower}
    for shape in SHAPES:
        if not present.isdisjoint(shape.gates):
            text, count = _replace(shape, text)
            counts[shape.kind] += count
    return text, +counts


def _replace(shape: Shape, text: str) -> tuple[str, int]:
    substitute = "[email]" if shape.kind == "email" else "[secret]"
    group = "value" if "value" in shape.pattern.groupindex else 0
    edits = [
        (*match.span(group), substitute)
        for match in shape.pattern.finditer(text)
        if shape.accepts is None or shape.accepts(match[group])
    ]
    return edited(text, edits), len(edits)


def without_names(text: str) -> tuple[str, int]:
    """Replace names before replaced e-mail addresses, and Jira's mentions; also in code, such as logs."""
    if "<[email]>" in text or "[~" in text:
        return _PERSON.subn("user", text)
    return text, 0


def without_people(text: str) -> tuple[str, int]:
    """Replace login names by which people are addressed or quoted; code and words such as `@Trait` stay."""
    if "@" not in text:
        return text, 0
    replaced = _MENTION.sub(
        lambda match: match["code"] or re.sub(_LOGIN, "@user", match[0]), text
    )
    return replaced, replaced.count("@user") - text.count("@user")
