"""Why proposals are dropped: the tables of each polarity are the answers of one run."""

import json
from contextlib import suppress

import llm_labeler
from pairkit import DataError
from tests.support.shorthand import module_fixture, parametrize, text_table

from .stored_answers import text_of

TEXT = "The doctor gave the child two tablets yesterday."
QUESTION = "How many words should a personal essay have?"
BAKERY = "The old bakery closes at six."
LONG = "It is known that " + "the dose and " * 40 + "the result are safe."


def by_reason(table):
    """Reason, text (`TEXT` if it is empty) and candidate by line."""
    rows = text_table(table)
    return [
        (text or TEXT, candidate, None if reason == "kept" else reason)
        for reason, text, candidate in rows
    ]


EITHER = [  # of both polarities
    *by_reason("""
    kept |  | A physician handed the child 2 pills the day before.
    echo |  | The doctor gave the child two tablets yesterday.
    echo |  | the doctor gave the child two tablets, yesterday!!
    echo | The hall holds 1,500 people. | The hall holds 1500 people.
    no_letters |  | 2 + 2 = 4 (100 %), 5 - 3 = 2! 1 + 1 = 2
    markup_only |  | https://example.org/doctor/child/tablets
    markup_only |  | [doctor](https://example.org/tablets)
    markup_only |  | <img src='doctor.png' alt='a child with tablets'/>
    kept |  | See https://example.org for the doctor's tablets.
    meta |  | This is the opposite of a doctor giving tablets.
    meta |  | I would say, as an AI, that tablets were given.
    meta |  | A synonymous sentence about tablets and a doctor.
    # Behind a sentence, they would be remarks.
    wrong_script | The doctor gave the child two tablets. Or two. | 昨天医生给了孩子两片药,医生给了孩子两片药。
    wrong_script | The doctor gave the child two tablets yesterday. Or a few. | Врач вчера дал ребёнку две таблетки.
    wrong_script | The doctor gave the child two tablets yesterday. Or both. | أعطى الطبيب الطفل قرصين أمس.
    too_short |  | Two pills.
    # A script is part of a text from a fifth on: one English word among three characters, not among five.
    kept | 我用GPS定 | The GPS of 我
    wrong_script | 我用GPS定位它 | The GPS of 我
    kept | 使用 PyTorch DataLoader 时 num_workers 会崩溃 | PyTorch 的 DataLoader 用 num_workers 就会崩
    kept | 使用 PyTorch DataLoader 时 num_workers 会崩溃 | 数据加载器在多进程时会崩溃
    wrong_script | 使用 PyTorch DataLoader 时 num_workers 会崩溃 | The loader crashes with workers
    # without letters, and so without a script
    kept | ²³ ²³ ²³ | Squares and cubes.
    wrong_script | There is a bug in PyTorch | 这个 bug 在 PyTorch 里
    wrong_script | 北京的医院非常大 | 東京の病院はとても大きいです
    # Japanese is written in kana, in Chinese characters, or in both.
    kept | 障害発生の報告 | サーバーがダウンした
    kept | サーバーの障害 | 障害発生
    wrong_script | 障害が発生した | The server is down
    wrong_script | サーバーがダウンした | The server went down
    kept | Beta blockers lower pressure | β-blockers lower blood pressure
    kept | The opposite of the word hot is cold. | The opposite of the word cold is hot, too.
    """),
    (TEXT, "The doctor gave the child \x1b[31mtwo pills.", "control_characters"),
    (TEXT, "The doctor gave the \ufffd two pills.", "control_characters"),
    (TEXT, "The doctor \u202egave the child two pills.", "control_characters"),
    (TEXT, "The doctor gave \ud800 the child pills.", "control_characters"),
    (TEXT, "The doctor gave \ue000 the child pills.", "control_characters"),
    (TEXT, "The opposite of the sentence is that no tablet was given.", "meta"),
    (TEXT, "The doctor gave pills. " * 9 + "The doctor gave pills.", "too_long"),
]
POSITIVE = [
    *by_reason("""
    not_a_question | How many words should a personal essay have? | The answer is 3200 words.
    not_a_question | How many words should a personal essay have? | A personal essay should have 650 words.
    kept | How many words should a personal essay have? | How long should a personal essay be?
    kept | How many words should a personal essay have? | Tell me the right length of a personal essay.
    not_a_question | 你吃饭了吗？ | 我刚刚在家吃过饭。
    kept | Wie setze ich mein Passwort zurück? | Erkläre mir, wie das Passwort neu gesetzt wird.
    not_a_question | Wie setze ich mein Passwort zurück? | Das Passwort wird per E-Mail neu gesetzt.
    kept | Как сбросить пароль? | Подскажите, каким образом сбросить пароль.
    kept | The old bakery closes at six. | Certainly, happy to help today!
    # Statements and requests may begin like questions.
    kept | When it rains, we stay home. | We stay home in the rain.
    kept | Do not smoke here! | Smoking is not allowed here.
    kept | How long should an essay be? | What is the right length of an essay.
    not_a_question | how do i exit vim | You exit vim with a colon and q.
    """)
]
# Each is a valid positive.
NEGATIVE = [
    *by_reason("""
    kept |  | The doctor did not give the child two tablets yesterday.
    kept |  | The doctor gave the child two tablets today.
    kept |  | The doctor gave the child three tablets yesterday.
    kept |  | No doctor gave the child two tablets yesterday.
    near_copy |  | A doctor gave a child two tablets yesterday.
    near_copy |  | The doctors gave the child two tablet yesterday.
    kept |  | The child gave the doctor two tablets yesterday.
    # One word can make a negative.
    # Small differences do, unlike spelling and inflection.
    kept | Hypertension is common. | Hypotension is common.
    kept | It is legal. | It is illegal.
    kept | He was careful. | He was careless.
    kept | It rose in 2018. | It rose in 2019.
    kept | You can enter. | You cannot enter.
    kept | x > 5 holds. | x < 5 holds.
    kept | 这种药是安全的。 | 这种药是不安全的。
    near_copy | The colour is organised. | The color is organized.
    near_copy | He doesn't know. | He does not know.
    near_copy | She can't swim. | She cannot swim.
    near_copy | She canʼt swim. | She can not swim.
    # Signs within numbers and names have a meaning, those between thousands don't.
    kept | Version 1.5 is out now. | Version 15 is out now.
    kept | It was -5 degrees. | It was 5 degrees.
    kept | She writes C#. | She writes C.
    kept | They like the tour. | They like the tor.
    # not "near_copy", as "four" isn't a British spelling
    unchanged | It lasted four hours. | It lasted for hours.
    near_copy | He likes the dog. | He liked a dog.
    kept | He failed to reach the top. | He reached the top.
    kept | Das Wasser ist nicht warm. | Das Wasser ist warm.
    kept | Cats like milk. | Cats like milk less than water.
    kept | She hardly eats meat. | She eats meat.
    kept | 这种药是不安全的。 | 这种药是安全的。
    kept | Вода не тёплая. | Вода тёплая.
    kept | A água não está quente. | A água está quente.
    kept | Vattnet är inte varmt. | Vattnet är varmt.
    kept | Su sıcak. | Su sıcak değil.
    kept | पानी गर्म नहीं है। | पानी गर्म है।
    kept | 물이 안 따뜻하다. | 물이 따뜻하다.
    kept | Nước không ấm. | Nước ấm.
    unchanged | Вода тёплая. | Вода тёплая сегодня.
    # Dropping or adding words only doesn't.
    unchanged |  | The doctor gave the child tablets.
    unchanged | He does not like the very old red car. | He does not like the old car.
    unchanged | A tired doctor gave a sick child two tablets late yesterday. | A doctor gave a child two tablets.
    # Fewer than half of the words
    kept | A tired doctor gave a sick child two tablets late yesterday. | A doctor gave tablets.
    # "given" is a new word here
    kept |  | A doctor has given the child two tablets.
    unchanged |  | The doctor gave two tablets yesterday.
    kept |  | The doctor gave the child no tablets.
    kept |  | The doctor gave the child three tablets.
    kept |  | The child gave the doctor two tablets.
    kept |  | The doctor could give the child two tablets.
    kept |  | The doctor refused the child two tablets.
    kept |  | The doctor gave the child two sweets yesterday.
    kept |  | Yesterday the doctor failed.
    """),
    (LONG, LONG.replace("safe", "unsafe"), None),
    (LONG, LONG.replace("are", "are not"), None),
    (LONG, LONG.replace("are safe", "aren't safe"), None),
    (LONG, LONG.replace("dose", "doses"), "near_copy"),
    (
        TEXT,
        "The doctor gave the child two tablets yesterday in the evening.",
        "unchanged",
    ),
    (
        TEXT,
        "The doctor gave the child two tablets yesterday by mistake, but not today.",
        None,
    ),
]
POSITIVES = [
    *EITHER,
    *POSITIVE,
    *((text, candidate, None) for text, candidate, _ in NEGATIVE),
]
NEGATIVES = [*EITHER, *NEGATIVE]


def reasons(out, pairs, **options):
    """Why each candidate of a text was dropped."""
    answers = {}
    for text, candidate, _ in pairs:
        answers.setdefault(text, []).append(candidate)

    def answer(prompt):
        return json.dumps({"sentences": answers[text_of(prompt)]})

    with suppress(DataError):  # no pair may be left
        given = {"size": 100, "polarity": "positive"} | options
        llm_labeler.generate([*answers], llm={"one": answer}, out=out, **given)
    found = {}
    for text, candidates in answers.items():
        proposed = [
            p.reason
            for p in gathered(text, out).proposals
            if p.polarity == given["polarity"]
        ]
        found |= zip(
            ((text, candidate) for candidate in candidates), proposed, strict=True
        )
    return found


def gathered(text, out):
    """The proposals and candidates of a text."""
    return llm_labeler.show(text, work=out.with_name(f"{out.name}.work")).gathered


@module_fixture
def positives(tmp_path_factory):
    return reasons(tmp_path_factory.mktemp("positives") / "out", POSITIVES)


@module_fixture
def negatives(tmp_path_factory):
    return reasons(
        tmp_path_factory.mktemp("negatives") / "out", NEGATIVES, polarity="negative"
    )


@parametrize("case", POSITIVES, ids=lambda case: case[1][:60])
def test_positives(positives, case):
    assert positives[case[:2]] == case[2]


@parametrize("case", NEGATIVES, ids=lambda case: case[1][:60])
def test_negatives(negatives, case):
    assert negatives[case[:2]] == case[2]


MOVED = "Yesterday the doctor gave the child two tablets."
NURSE = "The nurse gave the child two tablets yesterday."


@parametrize(
    "name, value, polarity, pairs",
    [
        ("same_script", False, "positive", [(TEXT, "Врач вчера дал ребёнку две таблетки.", None)]),
        ("min_length_ratio", 0, "positive", [(TEXT, "Two pills.", None)]),
        ("same_kind", False, "positive", [(QUESTION, "The answer is 3200 words.", None)]),
        # Without articles, five of six words are in the same order: 2 · 5 / 12.
        ("antonym_similarity", 0.83, "negative", [(TEXT, MOVED, "near_copy")]),
        ("antonym_similarity", 0.84, "negative", [(TEXT, MOVED, None)]),
        ("min_differing_words", 2, "negative", [(TEXT, NURSE, None)]),
        ("min_differing_words", 3, "negative", [(TEXT, NURSE, "few_differing_words")]),
        ("min_differing_words", 3, "positive", [(TEXT, NURSE, None)]),
        ("min_shared", 0.2, "positive", [
            (QUESTION, "Which mountain is the highest of all?", "nothing_shared"),
            (BAKERY, "Certainly, happy to help today!", "nothing_shared"),
            (BAKERY, "At six the aged bakery shuts.", None),
            (TEXT, "A doctor likes to read novels about old pirates.", "nothing_shared"),
            ("He runs fast.", "His running is speedy.", None),
            ("Who are you?", "Who might that be?", None),  # only stop words
            ("这本书很有意思。", "此书颇为有趣。", None),
            ("这本书很有意思。", "今天天气晴朗。", "nothing_shared"),
        ]),
        ("min_shared", 0.2, "negative", [
            (QUESTION, "A personal essay needs no fixed number of words.", None),
            (QUESTION, "Paris lies by the Seine.", "nothing_shared"),
            (TEXT, "A doctor likes to read novels about old pirates.", None),
        ]),
    ],
)  # fmt: skip
def test_settings_of_filters(name, value, polarity, pairs, out):
    result = reasons(out, pairs, polarity=polarity, settings={f"filters.{name}": value})
    assert result == {(text, candidate): reason for text, candidate, reason in pairs}


PUMP = "The old pump may leak in winter."
BEAT = "The red team of the small town beat the blue team of the large city in the end."
SWAPPED = (
    "The blue team of the large city beat the red team of the small town in the end."
)
TESTED = "The pump was tested in winter and leaked twice, so that it was sent back to the factory."


@parametrize(
    "text, line, reason",
    [
        (TEXT, "tense: The doctor gave the child tablets.", None),
        (TEXT, "negation: The doctor gave the child tablets.", "unchanged"),
        (PUMP, "entity: The old pump may leak in summer.", "unwanted_kind"),
        (BEAT, f"role: {SWAPPED}", None),
        (
            BEAT,
            "negation: The cats like fish on Fridays and never sleep at all here.",
            "few_words_kept",
        ),
    ],
)
def test_hard_negatives(text, line, reason, out):
    answers = {"paraphrase": "1. So it was, they say.", "hard": f"1. {line}"}
    with suppress(DataError):
        llm_labeler.generate(
            [text], llm={"one": lambda prompt: answers["hard" if "misled" in prompt else "paraphrase"]},
            task="triplet", out=out,
            settings={"prompt.changes": ["negation", "tense", "role"]},
        )  # fmt: skip
    assert gathered(text, out).proposals[-1].reason == reason


def test_a_query_must_be_a_question(out):
    def answer(prompt):
        return (
            "1. Who sings?\n2. The pump leaked."
            if "does not answer" in prompt
            else "1. What leaked?"
        )

    llm_labeler.generate([TESTED], llm={"one": answer}, task="query", out=out)
    proposals = gathered(TESTED, out).proposals
    assert [proposal.reason for proposal in proposals] == [None, None, "asks_nothing"]


# Proposals of several LLMs

SAID = "A man plays a guitar."


def screened(out, **answers):
    """Proposals and candidates of LLMs with these positives and negatives."""

    def llm(sentences):
        return lambda prompt: json.dumps(sentences["say the opposite" in prompt])

    with suppress(DataError):
        llms = {name: llm(sentences) for name, sentences in answers.items()}
        llm_labeler.generate([SAID], llm=llms, out=out, size=9)
    return gathered(SAID, out)


def test_a_candidate_has_all_its_proposers_and_repeats_are_dropped(out):
    result = screened(
        out,
        llama=(["someone plays a guitar"], []),
        chatgpt=(["Someone plays a guitar."], []),
        chatglm=(["Sure!", "SOMEONE plays a guitar!", "someone plays a guitar"], []),
    )
    (candidate,) = result.candidates
    # Spelling of chatglm, the first by name.
    assert candidate.candidate == "SOMEONE plays a guitar!"
    assert candidate.llms == ("chatglm", "chatgpt", "llama")
    assert [p.reason for p in result.proposals if p.polarity == "positive"] == [
        "too_short", None, "repeated", None, None
    ]  # fmt: skip


def test_sentences_of_both_polarities_are_dropped(out):
    result = screened(
        out,
        a=(["Someone strums a guitar.", "A guy plays a guitar."], ["No."]),
        b=(
            ["No."],
            [
                "someone strums a guitar",
                "Someone strums a guitar!",
                "Nobody plays a guitar.",
            ],
        ),
    )
    both = "both_polarities"
    assert [p.reason for p in result.proposals if p.candidate != "No."] == [
        both,
        None,
        both,
        both,
        None,
    ]
    kept = [
        ("A guy plays a guitar.", "positive"),
        ("Nobody plays a guitar.", "negative"),
    ]
    assert [(c.candidate, c.polarity) for c in result.candidates] == kept


def test_a_dropped_negative_does_not_contest_a_positive(out):
    near = "The man played a guitar."
    result = screened(out, a=([near], []), b=([], [near]))
    assert [p.reason for p in result.proposals if p.candidate == near] == [
        None,
        "near_copy",
    ]
    assert [candidate.polarity for candidate in result.candidates] == ["positive"]
