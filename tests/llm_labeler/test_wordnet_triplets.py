"""Hard negatives, and questions about a passage, by rules over WordNet: one run of each task."""

from tests.support.shorthand import module_fixture, parametrize, text_table, values

from .stored_answers import by_rules

HARD = text_table("""
    negation | The valve opens at night. | The valve does not open at night.
    negation | The drops may cause itching in some. | The drops cannot cause itching in some.
    antonym | Most of these lumps are benign. | Most of these lumps are malignant.
    antonym | The new filter reduces the risk of leaks. | The new filter increases the risk of leaks.
    number | Take it for 5 days. | Take it for 15 days.
    number | About 30 percent of users agreed to it. | About 70 percent of users agreed to it.
    number | It serves 12,000 users in one town. | It serves 6,000 users in one town.
    number | She has type 2 diabetes since last spring. | She has type 1 diabetes since last spring.
    role | Stress can cause insomnia. | Insomnia can cause stress.
    role | Can a virus trigger asthma? | Can asthma trigger a virus?
    role | The rash is caused by a mite. | A mite is caused by the rash.
    role | It is more common in towns than in villages. | It is more common in villages than in towns.
    tense | The new pump has been tested. | The new pump will be tested.
    tense | The museum was opened by a duke. | The museum will be opened by a duke.
    modality | You should see a nurse. | You need not see a nurse.
    modality | The seal may leak in winter. | The seal will always leak in winter.
""")
ORGANS = [
    "bladder",
    "pancreas",
    "spleen",
    "liver",
    "stomach",
    "heart",
    "kidney",
    "lung",
    "brain",
]
THREE_ORGANS = "The pills protect the liver, the stomach and the heart."
KIDNEYS = "Both kidneys were swollen again."
DIGITS = ["8" * 16, "8" * 400, "8" * 5000, "8" + ",888" * 200, "8" * 400 + ".5"]
HUGE = [
    f"The report speaks of {words} in it."
    for digits in DIGITS
    for words in (
        f"{digits} users",
        f"a {digits}-year plan",
        f"about {digits} mg",
        f"{digits} percent",
    )
]
# No hard negative of this kind; "": of no kind, and no paraphrase.
NOT_HARD = [
    ("entity", "On the other hand, it is cheap."),
    ("entity", "The drug is taken by mouth."),  # idioms
    ("entity", "He has fatty liver."),  # a name
    ("entity", "He has a low pulse (heart rhythm)."),  # in brackets
    ("number", "See page 12 of the guide."),
    ("number", "Stage 0 is the first of them."),
    ("number", "Read chapter 3.1 for more."),
    *(("number", text) for text in HUGE),
    ("", "Symptoms - fever - cough - a rash that may spread."),
    ("", "Heart problems in children"),
    ("", "Call 555 1234. Ask for a nurse."),
    ("", "Yes."),
    ("", "word " * 60 + "is here."),
]
SEVERAL = "The doctor should see 20 children with asthma before the end of the year."
FULL = "The tank is not often full."
QUESTIONS = values("""
    Can stress cause a rash? | ['Can a rash be caused by stress?']
    How often should I water it? | ['How frequently should I water it?']
    What is the difference between a lake and a pond? | ['How does a lake differ from a pond?']
    # about two things
    What is the treatment of choice for gout? | []
    What is the difference between a lake and a pond and which is deeper? | []
""")


@module_fixture
def triplets(tmp_path_factory):
    texts = [
        *(text for _, text, _ in HARD),
        *(text for _, text in NOT_HARD),
        *(question for question, _ in QUESTIONS),
        THREE_ORGANS,
        KIDNEYS,
        SEVERAL,
        FULL,
    ]
    return by_rules(tmp_path_factory.mktemp("triplets") / "out", texts, task="triplet")


@module_fixture
def hard(triplets):
    """Hard negatives as (kind, sentence)."""

    def of_text(text):
        lines = (line.partition(": ") for line in triplets[text, "negative"])
        return [(kind, sentence) for kind, _, sentence in lines]

    return of_text


@parametrize("kind, text, expected", HARD)
def test_hard_negatives_of_each_kind(hard, kind, text, expected):
    assert (kind, expected) in hard(text)


@parametrize("kind, text", NOT_HARD)
def test_names_references_and_headings_are_left_alone(triplets, hard, kind, text):
    assert not [found for found, _ in hard(text) if found == kind or not kind]
    assert kind or triplets[text, "positive"] == []


def test_siblings_are_not_in_the_sentence(hard):
    result = [sentence for kind, sentence in hard(THREE_ORGANS) if kind == "entity"]
    assert result
    for sentence in result:
        organs = [
            word
            for word in sentence.strip(".").replace(",", "").split()
            if word in ORGANS
        ]
        assert len(organs) == len(set(organs)) == 3
    (plural, *_) = [sentence for kind, sentence in hard(KIDNEYS) if kind == "entity"]
    assert plural.split()[1].endswith("s")


def test_the_best_of_each_kind_come_first_and_contractions_last(hard, triplets):
    kinds = [kind for kind, _ in hard(SEVERAL)]
    first = len(set(kinds))
    assert first >= 3
    assert len(set(kinds[:first])) == first
    result = triplets[FULL, "positive"]
    assert "'" in result[-1]
    assert "'" not in result[0]


@parametrize("question, expected", QUESTIONS)
def test_questions_are_paraphrased(triplets, question, expected):
    assert triplets[question, "positive"][:1] == expected


PASSAGES = text_table("""
    Blue knee fever is a rare disorder that begins at sea. | What is blue knee fever?
    Blue knee fever is usually caused by a mite. | What causes blue knee fever?
    Symptoms of blue knee fever include itching at night. | What are the symptoms of blue knee fever?
    Blue knee fever is treated with warm salt water. | How is blue knee fever treated?
    Blue knee fever affects about 1 in 9,000 sailors. | How common is blue knee fever?
""")
TWO_TOPICS = "Blue knee fever is a rare disorder. It is treated with salt, and a blood test can tell it."
NO_TOPICS = [
    "It is a rare disorder.",
    "The disorder is treated with salt.",
    "A nurse is a person who helps the ill.",  # not an illness
    "Blue knee fever is not a disorder.",
    "Preventing fires is a condition of safety.",
    "What is blue knee fever?",
]


@module_fixture
def queries(tmp_path_factory):
    texts = [*(passage for passage, _ in PASSAGES), TWO_TOPICS, *NO_TOPICS]
    return by_rules(tmp_path_factory.mktemp("queries") / "out", texts, task="query")


@parametrize("passage, question", PASSAGES)
def test_positives_ask_for_the_stated_topic(queries, passage, question):
    assert queries[passage, "positive"][0] == question
    negatives = queries[passage, "negative"]
    assert negatives
    assert question not in negatives


def test_negatives_avoid_mentioned_topics(queries):
    asked = " ".join(queries[TWO_TOPICS, "negative"])
    assert not [word for word in ("treated", "diagnosed", "common") if word in asked]
    assert "causes" in asked


@parametrize("passage", NO_TOPICS)
def test_other_sentences_give_no_questions(queries, passage):
    assert queries[passage, "positive"] == queries[passage, "negative"] == []
