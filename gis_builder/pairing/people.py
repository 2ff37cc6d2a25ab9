"""Replace names of people in texts of issues: in signatures, and logins that are addressed or quoted.

Only the form of a name and the words around it count, so a text doesn't depend on the rest of its tracker.
"""

from __future__ import annotations

import re

# "Ann Lee <[email]>": up to four words with capitals, or a name in a script without them; Jira's "[~ann]".
_NAME = re.compile(
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


def without_names(text: str) -> tuple[str, int]:
    """Replace names before replaced e-mail addresses, and Jira's mentions; also in code, such as logs."""
    if "<[email]>" in text or "[~" in text:
        return _NAME.subn("user", text)
    return text, 0


def without_people(text: str) -> tuple[str, int]:
    """Replace login names by which people are addressed or quoted; code and words such as `@Trait` stay."""
    if "@" not in text:
        return text, 0
    replaced = _MENTION.sub(
        lambda match: match["code"] or re.sub(_LOGIN, "@user", match[0]), text
    )
    return replaced, replaced.count("@user") - text.count("@user")
