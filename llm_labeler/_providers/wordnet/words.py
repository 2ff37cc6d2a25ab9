"""The closed classes of English, each word with the codes it may have, and irregular forms.

| code | stands for | as in |
|---|---|---|
| `D` | determiner, possessive, quantifier before a noun | the, its, many |
| `P` | pronoun | it, they, someone |
| `E` | there, that something is | there are |
| `I` | preposition | of, during |
| `C` | coordination | and, or, but |
| `S` | subordination | if, because |
| `W` | relative or question word | who, which |
| `T` | to, before a verb | to prevent |
| `M` | modal | may, cannot |
| `B` `H` `O` | to be, to have, to do; finite | is, has, does |
| `b` | to be; not finite | be, been |
| `N` | not | not |
| `R` | adverb | often |
| `J` | adjective | severe |
| `n` `s` | noun, singular and plural | cell, cells |
| `#` | number | 12, three |
| `v` `z` | verb, base form and third person | cause, causes |
| `d` `e` `g` | verb, past, participle in -ed, in -ing | began, begun, beginning |
| `,` `.` | lesser break, end | ; ( - |
| `x` | what is no word | an address |
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text, to be looked up in."""
    return frozenset(text.split())


_CLOSED = {
    "D": """
        the a an this that these those my your his her its our their whose no every each some any all both
        many much several few most more fewer less another other such either neither enough certain various
    """,
    "P": """
        i you he she it we they me him us them this that these those myself yourself himself herself itself
        ourselves themselves someone somebody something anyone anybody anything everyone everybody everything
        nobody nothing none one ones others some many most all both each several few more another hers theirs
        ours mine yours it's he's she's they're we're you're i'm i've you've we've they've i'll you'll they'll
        that's
    """,
    "E": "there there's",
    "I": """
        of in on at by with without within from into onto for to than as about above across after against
        along among around before behind below beneath beside besides between beyond despite during except
        inside like near off out outside over per since through throughout toward towards under underneath
        until unlike up upon via versus vs including regarding concerning down plus minus
    """,
    "C": "and or but nor yet &",
    "S": """
        if because although though unless while whereas when whenever since until once before after as that
        whether so lest
    """,
    "W": "who whom which that whose what where why how when whatever whichever whoever",
    "T": "to",
    "M": "can could may might must shall should will would cannot can't couldn't won't wouldn't shouldn't",
    "B": "is are was were am isn't aren't wasn't weren't",
    "b": "be been being",
    "H": "have has had haven't hasn't hadn't having",
    "O": "do does did don't doesn't didn't",
    "N": "not",
    "R": """
        also very too so then thus however therefore only just even still already often never always usually
        sometimes rarely seldom more most less least quite rather almost nearly again soon now here there not
        as together instead perhaps maybe ever later away back well much further once about approximately
        especially particularly typically generally normally frequently commonly yet both otherwise
        up down out off over
    """,
    "J": "same such other different own more most less fewer certain various able unable due likely further",
    "#": """
        one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy
        eighty ninety hundred thousand million billion first second third half
    """,
    "s": "people women men children feet teeth mice lice bacteria fungi data police",
    "n": "percent % other someone",
    "d": "said went came saw knew felt told began",
    "z": "helps",
    "e": "called known given seen shown done gone made found used based born taken due",
}
CLOSED: dict[str, str] = {}
for _code, _words in _CLOSED.items():
    for _word in _words.split():
        CLOSED[_word] = CLOSED.get(_word, "") + _code

# These are verbs, nouns or adjectives too, so WordNet is asked as well.
HALF_OPEN = word_set(
    """
    like near well back over past second people children found given seen shown done made known used
    taken felt told saw knew said went came began men women own other less up down out off being data
    minus plus including regarding concerning following according
    """
)

# Words with which a clause that another depends on begins.
SUBORDINATORS = word_set("if because although though unless while when whenever whereas since until")

# base, past, participle; the third column is absent where it equals the second
_IRREGULAR = """
    arise arose arisen; become became become; begin began begun; bite bit bitten; bleed bled; blow blew
    blown; break broke broken; breed bred; bring brought; build built; burst burst; buy bought; catch
    caught; choose chose chosen; come came come; cost cost; cut cut; deal dealt; dig dug; draw drew drawn;
    drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight
    fought; find found; flee fled; fly flew flown; forbid forbade forbidden; forget forgot forgotten;
    freeze froze frozen; get got gotten; give gave given; go went gone; grow grew grown; hang hung; have
    had; hear heard; hide hid hidden; hit hit; hold held; hurt hurt; keep kept; know knew known; lay laid;
    lead led; leave left; lend lent; let let; lie lay lain; lose lost; make made; mean meant; meet met;
    overcome overcame overcome; pay paid; put put; quit quit; read read; rid rid; ride rode ridden; ring
    rang rung; rise rose risen; run ran run; say said; see saw seen; seek sought; sell sold; send sent;
    set set; shake shook shaken; shed shed; shine shone; shoot shot; show showed shown; shrink shrank
    shrunk; shut shut; sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke
    spoken; spend spent; spin spun; split split; spread spread; stand stood; steal stole stolen; stick
    stuck; sting stung; strike struck; swell swelled swollen; swim swam swum; swing swung; take took
    taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown; undergo underwent
    undergone; understand understood; wake woke woken; wear wore worn; win won; withdraw withdrew
    withdrawn; wind wound; write wrote written; rebuild rebuilt; undertake undertook undertaken; foresee
    foresaw foreseen; lean leaned; learn learned; burn burned; spell spelled; smell smelled; focus
    focused; die died; tie tied; benefit benefited; diagnose diagnosed; travel traveled; refer referred
"""
PAST: dict[str, tuple[str, str]] = {}
for _row in _IRREGULAR.split(";"):
    _base, _past, *_rest = _row.split()
    PAST[_base] = (_past, _rest[0] if _rest else _past)

PLURALS = {
    "man": "men", "woman": "women", "child": "children", "foot": "feet", "tooth": "teeth",
    "mouse": "mice", "person": "people", "life": "lives", "knife": "knives", "wife": "wives",
    "leaf": "leaves", "half": "halves", "self": "selves", "shelf": "shelves", "loaf": "loaves",
    "wolf": "wolves", "calf": "calves", "goose": "geese", "louse": "lice", "bacterium": "bacteria",
    "fungus": "fungi", "criterion": "criteria", "virus": "viruses", "phenomenon": "phenomena",
    "nucleus": "nuclei", "stimulus": "stimuli", "symptom": "symptoms", "formula": "formulas",
    "index": "indexes", "matrix": "matrices", "datum": "data", "fetus": "fetuses",
}  # fmt: skip

# Adjectives and adverbs whose degrees are words of their own.
DEGREES = {
    "good": ("better", "best"), "well": ("better", "best"), "bad": ("worse", "worst"),
    "badly": ("worse", "worst"), "far": ("farther", "farthest"), "many": ("more", "most"),
    "much": ("more", "most"), "little": ("less", "least"), "few": ("fewer", "fewest"),
}  # fmt: skip
