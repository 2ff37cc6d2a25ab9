import json
import re

from llm_labeler.parsing.answer import REASONS, parse_answer, parse_hard_negatives
from llm_labeler.parsing.lines import JOINED, LINE_RULES
from llm_labeler.records import Item, ending_of
from tests.support.shorthand import (
    each_line,
    parametrize,
    text_lines,
    text_table,
    values,
)

TEXT = "A man is playing a guitar."
ONE = "Someone plays the guitar."
TWO = "A person is strumming, see fig. 1. for 3.5 mg."
THREE = "There is a guy who makes 1) music and 2) noise."
ZH_TEXT = "一个男人在弹吉他。"
ZH_ONE, ZH_TWO = "有人正在弹奏吉他。", "男子弹着吉他。"


def kept(raw, text=TEXT, **options):
    return [
        item.text
        for item in parse_answer(raw, text=text, **options)
        if item.reason is None
    ]


def reasons(raw, text=TEXT, **options):
    return [item.reason for item in parse_answer(raw, text=text, **options)]


@parametrize(
    "raw",
    [
        *text_lines(rf"""
        1.{ONE}\n2.{TWO}\n3.{THREE}
        [1] {ONE}\n[2] {TWO}\n[3] {THREE}
        1 - {ONE}\n2 - {TWO}\n3 - {THREE}
        １、{ONE}\n２、{TWO}\n３、{THREE}
        ❶ {ONE}\n❷ {TWO}\n❸ {THREE}
        1️⃣ {ONE}\n2️⃣ {TWO}\n3️⃣ {THREE}
        1. {ONE}\n1. {TWO}\n1. {THREE}
        > 1. {ONE}\n> 2. {TWO}\n> 3. {THREE}
        A. {ONE}\nB. {TWO}\nC. {THREE}
        i. {ONE}\nii. {TWO}\niii. {THREE}
        I) {ONE}\nII) {TWO}\nIII) {THREE}
        - [ ] {ONE}\n- [x] {TWO}\n- [ ] {THREE}
        - 1. {ONE}\n- 2. {TWO}\n- 3. {THREE}
        1. **{ONE}**\n2. *{TWO}*\n3. __{THREE}__
        ### 1. {ONE}\n### 2. {TWO}\n### 3. {THREE}
        1. Antonym sentence: {ONE}\n2. Antonym sentence: {TWO}\n3. Antonym sentence: {THREE}
        - **Formal:** {ONE}\n- **Casual**: {TWO}\n- **Short:** {THREE}
        **Sentence 1:**\n{ONE}\n\n**Sentence 2:**\n{TWO}\n\n**Sentence 3:**\n{THREE}
        1. "{ONE}"\n2. “{TWO}”\n3. 「{THREE}」
        1. &quot;{ONE}&quot;\n2. &#34;{TWO}&#x22;\n3. {THREE}
        1. '{ONE}'\n2. `{TWO}`\n3. «{THREE}»
        "{ONE}", "{TWO}", "{THREE}"
        {ONE}\n---\n{TWO}\n---\n{THREE}
        Output:\n1. {ONE}\n2. {TWO}\n3. {THREE}
        ```text\n1. {ONE}\n2. {TWO}\n3. {THREE}
        <p>{ONE}</p><p>{TWO}</p><p>{THREE}</p>
        {ONE}<br>{TWO}<br/>{THREE}
        <sentence>{ONE}</sentence><sentence>{TWO}</sentence><sentence>{THREE}</sentence>
        <1>{ONE}</1>\n<2>{TWO}</2>\n<3>{THREE}</3>
        ['{ONE}', '{TWO}', '{THREE}',]
        [“{ONE}”, “{TWO}”, “{THREE}”]
        ["{ONE}", "{TWO}", "{THREE}"
        ["1. {ONE}", "2. {TWO}", "3. {THREE}"]
        {{"1": "{ONE}", "2": "{TWO}", "3": "{THREE}"}}
        {{"sentence_1": "{ONE}", "sentence_2": "{TWO}", "sentence_3": "{THREE}"}}
        {{'output': ['{ONE}', '{TWO}', '{THREE}']}}
        ("{ONE}", "{TWO}", "{THREE}")
        <|assistant|>\n1. {ONE}\n2. {TWO}\n3. {THREE}<|endoftext|>
        [/INST] 1. {ONE}\n2. {TWO}\n3. {THREE} [/INST]
        1. {ONE[:8]}\n   {ONE[8:]}\n2. {TWO[:9]}\n{TWO[9:]}\n3. {THREE}
        1.\n{ONE}\n2.\n\n{TWO}\n3.\n{THREE}
    """),
        f"1. {ONE}\r\n\r\n2. {TWO}\r\n\r\n3. {THREE}\r\n",
        f"   1. {ONE}\n   2. {TWO}\n   3. {THREE}",
        f'{{"output": "1. {ONE}\\n2. {TWO}\\n3. {THREE}"}}',
        f'"[\\"{ONE}\\", \\"{TWO}\\", \\"{THREE}\\"]"',
        f"\ufeff1. {ONE}\u200b\n2. {TWO}\n3. {THREE}",
    ],
)
def test_list_formats(raw):
    assert kept(raw) == [ONE, TWO, THREE]


@parametrize(
    "raw",
    [
        *text_lines(rf"""
        一、{ZH_ONE}\n二、{ZH_TWO}
        （一）{ZH_ONE}\n（二）{ZH_TWO}
        第一句：{ZH_ONE}\n第二句：{ZH_TWO}
        同义句1：{ZH_ONE}\n同义句2：{ZH_TWO}
        好的，以下是两个同义句：\n1. {ZH_ONE}\n2. “{ZH_TWO}”\n\n希望对您有帮助！
        好的，以下是两个同义句：1. {ZH_ONE}2. {ZH_TWO}
        {ZH_ONE}{ZH_TWO}
        输出：\n1. {ZH_ONE}\n2. {ZH_TWO}
        原句：{ZH_TEXT}\n同义句：{ZH_ONE}\n同义句：{ZH_TWO}
        {{"sentences"：["{ZH_ONE}"，"{ZH_TWO}"]}}
    """),
    ],
)
def test_chinese_formats(raw):
    assert kept(raw, ZH_TEXT) == [ZH_ONE, ZH_TWO]


@parametrize(
    "expected, raw",
    [
        ("empty_answer", ""),
        ("empty_answer", " \n\t"),
        *text_table(
            rf"""
        preamble kept | Sure! Here are 3 synonymous sentences:\n\n1. {ONE}
        preamble kept kept | Sure! Here are 3 synonymous sentences: 1. {ONE}\n2. {TWO}
        preamble preamble kept | Sure!\n\nHere are the sentences:\n- {ONE}
        preamble kept | Here's an antonym sentence: "{ONE}"
        preamble kept | Certainly! {ONE}
        preamble kept | Yes, of course! {ONE}
        preamble kept | **Synonymous sentences:**\n1. {ONE}
        preamble kept | ## Antonyms\n- {ONE}
        outside_list kept | Three of them\n1. {ONE}
        kept closing_note | 1. {ONE}\n\nI hope this helps!
        kept closing_note | 1. {ONE}\nLet me know if you need more.
        kept closing_note | {ONE}\n\nNote: the tense was changed.
        kept closing_note | {ONE} I hope this helps!
        kept remark | {ONE} (4 words)
        kept remark | 1. {ONE} (Note: the tense was changed.)
        kept sub_item kept | 1. {ONE}\n   - the tense was changed\n2. {TWO}
        preamble kept kept | 1. Synonyms:\n   - {ONE}\n   - {TWO}
        preamble kept kept | - Synonyms\n  - {ONE}\n  - {TWO}
        kept sub_item kept | - {ONE}\n  - the tense was changed\n- {TWO}
        echo kept | Input sentence: {TEXT}\nOutput:\n1. {ONE}
        echo kept | Input sentence: {TEXT} Output: {ONE}
        echo kept | Original: {TEXT}\nAntonym: {ONE}
        echo kept | 1. Original: {TEXT}\n   Antonym: {ONE}
        echo kept | Original: {TEXT} / Antonym: {ONE}
        echo kept | Original: {TEXT} -> New sentence: {ONE}
        thinking kept | <think>Hm.\n1. no</think>1. {ONE}
        thinking kept | Hm.\n1. no</think>1. {ONE}
        thinking | <think>Hm.\n1. no
        echo kept | <s>[INST] Write. [/INST] {ONE}</s>
        echo kept | <|user|>\nWrite.<|assistant|>\n{ONE}
        thinking kept | <|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{ONE}
        kept | {ONE}<|end|><|start|>assistant<|channel|>analysis<|message|>
        kept runaway | 1. {ONE}\n\nInput sentence: Dogs bark.\nOutput:\n1. A dog barks.
        kept runaway | 1. {ONE}<|im_end|>\n<|im_start|>user\nMore!<|im_end|>
        echo kept | | Original | Antonym |\n|---|---|\n| {TEXT} | {ONE} |
        echo kept side_field | {{"original": "{TEXT}", "antonym": "{ONE}", "why": "tense"}}
        kept kept | {{"notes": ["{ONE}", "{TWO}"]}}
        kept kept outside_list | ["{ONE}", "{TWO}",,] Hope {{this}} helps
        kept side_field | {{"antonym": "{ONE}", "notes": ["the tense was changed"]}}
        side_field kept side_field | {{"sentence_id": "a1", "text": "{ONE}", "text_type": "negation"}}
        kept | {{"changed_sentence": "{ONE}"}}
        kept side_field | {{"counterpart": "{ONE}", "changes": "tense"}}
        preamble kept | Changed sentence:\n{ONE}
        kept refusal | {ONE}\nNo further paraphrases are possible.
        kept refusal | {ONE}\nNo more options.
        thinking kept | Wait, no.\n{ONE}
        preamble kept not_text closing_note | The JSON: {{"sentences": ["{ONE}", 7]}} Enjoy
        kept | {{"{TEXT}": "{ONE}"}}
        unparsable | [1]
        empty_answer | []
        empty_answer | {{"sentences": []}}
        side_field | {{"error": "overloaded"}}
        unparsable | ---\n***
        unparsable | <!DOCTYPE html><html><body>502 Bad Gateway</body></html>
        kept | <html><body><ul><li>{ONE}</li></ul></body></html>
        kept refusal | {ONE}\nI'm sorry, I cannot generate more sentences.\nIt is too short.
        kept cut_off | ["{ONE}", "{TWO[:20]}
        kept kept | {{"sentences": ["{ONE}", "{TWO}"
            """,
            columns=2,
        ),
    ],
)
def test_other_parts_of_answers_have_reasons(expected, raw):
    items = parse_answer(raw, text=TEXT)
    assert [item.reason or "kept" for item in items] == expected.split()
    assert [item.text for item in items if item.reason is None] in (
        [],
        [ONE],
        [ONE, TWO],
    )


DRAFTS = "Two sentences are needed.\n1. A draft man is playing.\n2. Another man plays a draft."
LIST = f"1. {ONE}\n2. {TWO}"
THOUGHTS = """
    <think> </think>  <seed:think> </seed:think>  <longcat_think> </longcat_think>  <|think|> <|/think|>
    <unused94>thought <unused95>  <|channel>thought <channel|>  <|begin_of_thought|> <|end_of_thought|>
    <|START_THINKING|> <|END_THINKING|><|START_RESPONSE|>  <|think_start|> <|think_end|>  <plan> </plan>
    <|inner_prefix|> <|inner_suffix|>  [unused16] [unused17]  <inner_monologue> </inner_monologue>
    <think> </think><|begin_of_box|>  <Thought> </Thought><Output>  <draft> </draft><final>  [THINK] [/THINK]
    <|im_start|>think <|im_end|><|im_start|>answer  <|x|> <|y|>  <mm:think> </mm:think>  ◁think▷ ◁/think▷
"""
ENDS = """
    <|end_of_box|> <turn|> [e~[ ]~b] <|im_end|> <|END_OF_TURN_TOKEN|> <|END_RESPONSE|> <|eom_id|> <|call|>
    <|eos|> <｜end▁of▁sentence｜> <|hy_place▁holder▁no▁2|> <|im_sep|> <|sep|> [EOS] <end_of_utterance>
    <|turn>user <unused1> <<END>> <0x0A> </answer>
"""


@parametrize("pair", re.findall(r"\S+ \S+", THOUGHTS))
@parametrize("answer", [LIST, json.dumps([ONE, TWO])])
def test_reasoning_between_tokens_of_any_form(pair, answer):
    opening, closing = pair.split()
    assert kept(f"{opening}\n{DRAFTS}{closing}\n{answer}") == [ONE, TWO]
    assert kept(f"{answer}\n<thinking>{DRAFTS}</thinking>") == [ONE, TWO]


@parametrize("end", ENDS.split())
@parametrize("answer", [LIST, json.dumps([ONE, TWO])])
def test_end_marks_of_any_form(end, answer):
    assert kept(f"{answer}{end}") == kept(f"{answer}\n{end}") == [ONE, TWO]


@parametrize(
    "raw",
    [
        f"<answer>\n{LIST}\n</answer>\nI hope this helps!",
        f"<list>\n{LIST}\n</list>\nI hope this helps!",
        f"<synonyms>\n{LIST}\n</synonyms>\n<explanation>They are synonyms.\nFine.</explanation>",
        f"<option_1>\n{ONE}\n</option_1>\n<option_2>\n{TWO}\n</option_2>",
        f"<s1>\n{ONE}\n</s1>\n<s2>\n{TWO}\n</s2>",
        f"<|begin_of_box|>{LIST}<|end_of_box|>\nI hope this helps.",
        f"[BEGIN FINAL RESPONSE]\n{LIST}\n[END FINAL RESPONSE]",
        f"{LIST}\n\n<analysis>\nBoth keep the meaning.\n</analysis>",
    ],
)
def test_tokens_around_sentences(raw):
    assert kept(raw) == [ONE, TWO]


@parametrize(
    "raw",
    [
        *text_lines(r"""
        I'm sorry, but I can't assist with that request.
        As an AI language model, I cannot write that.\n1. Ask a person.\n2. Ask a book.
        Sorry, I am unable to provide that.\n\nIs there another sentence?
        I cannot fulfill your request.
        Could you please provide the sentence?
        很抱歉，我无法生成反义句。
        作为一个人工智能语言模型，我不能回答这个问题。
        对不起，我不太明白您的问题。
        对不起，我还没有学会回答这个问题。
        Es tut mir leid, aber ich kann bei dieser Anfrage nicht helfen.
        Als KI-Sprachmodell kann ich dazu keine Ratschläge geben. Fragen Sie einen Arzt.
        Je suis désolé, mais je ne peux pas vous aider avec cette demande.
        Lo siento, pero no puedo ayudar con esa solicitud.
        Mi dispiace, ma non posso aiutarti con questa richiesta.
        Desculpe, mas não posso ajudar com esse pedido.
        Het spijt me, maar ik kan niet helpen met dit verzoek.
        Извините, я не могу помочь с этим запросом.
    """),
        "عذرًا، لا أستطيع المساعدة في هذا الطلب.",
        "申し訳ございませんが、お手伝いできません。",
        "죄송합니다. 그 요청은 도와드릴 수 없어요.",
        "Przykro mi, ale nie mogę pomóc w tej sprawie.",
        "Üzgünüm, ancak bu isteğe yardımcı olamam.",
        "क्षमा करें, मैं इस अनुरोध में आपकी सहायता नहीं कर सकता।",
        "No further antonyms.",
    ],
)
def test_refusals(raw):
    assert set(reasons(raw)) == {"refusal"}


def test_apologies_of_customers_are_kept():
    for raw in (
        "すみません、手伝っていただけませんか。",
        "申し訳ありませんが、もう一度お答えください。",
        "すみません、リクエストが送信されません。",
        "죄송하지만 요청을 취소할 수 없나요?",
        "क्षमा करें, मुझे कोई मदद नहीं मिली।",
        "Xin lỗi, tôi không nhận được hỗ trợ.",
    ):
        assert "refusal" not in reasons(raw)


@each_line("""
    finish, reason
    content_filter | filtered
    SAFETY | filtered
    error | failed
    tool_calls | empty_answer
    refusal | refusal
""")
def test_empty_answers_have_the_reason_of_their_ending(finish, reason):
    assert reasons("", finish=finish) == [reason]
    assert finish != "refusal" or reasons("No.", finish=finish) == [reason]
    assert reasons(f"1. {ONE}\n\nNote: I have", finish="length") == [
        None,
        "closing_note",
    ]


@parametrize("raw", ["", " \n", "<think>The user wants"])
def test_a_limit_reached_before_the_answer_is_reported(raw):
    assert reasons(raw, finish="length")[-1] == "limit_spent"
    assert "max_tokens" in REASONS["limit_spent"]


@parametrize(
    "text, answer",
    [
        *text_table("""
        I'm sorry, I can't help you with the request. | I am sorry, I can't assist you with the request.
        Let me know when you arrive. | Let me know once you get there.
        Patients with diabetes should eat well. | If you have diabetes, you should eat well.
        The symptoms include fever and cough. | The symptoms include the following: fever, cough.
        Here is the list: one and two. | Here are the items: one and two.
        Output: the volume is wrong | Output: the volume is bad
        Sentence 1: wrong | Sentence 1: bad
        Note: it rains. | Note: rain falls.
        E. coli grows in milk. | E. coli thrives in milk.
        A. fumigatus is a mould. | A. fumigatus belongs to the moulds.
        A -> B is fast | A -> B runs quickly
        It takes 1) time and 2) money. | 1) time and 2) money are what it takes.
        Parsing of {"a": "b"} fails | It can't parse: {"a": "b"}
        Use <li> for items. | <li> is for items.
    """),
        ("He said so.", 'He said "yes" and she said "no"'),
        ("He said so.", '"Yes" was what he said, not "no"'),
        ("The value |x| is below |y|.", "|x| is smaller than |y|."),
        *text_table("""
        The dogs' bowl | The bowl of the dogs'
        It lasts from 10:30 to 11:00. | 10:30 to 11:00 is when it lasts.
        It costs 3.5 dollars. | 3.5 dollars is what it costs.
        Two things. They differ. | There are two things. They are different.
        He is a student. | You are a helpful student.
        我是一个学生。 | 你是一个学生。
        Ich kann morgen nicht helfen. | Leider kann ich morgen nicht helfen.
        Dr. Smith lives on St. John Ave. | On St. John Ave. is where Dr. Smith lives.
        Two times three is six. | 2*3 makes 6
        The area is their product. | a*b is the area
        Two to the third is eight. | 2**3 is 8
        The total is wrong. | count(*) gives a wrong total
        It reads text files. | It reads *.txt and *.csv files
        It takes named values. | It takes one **kwargs and some *args
        A list of texts is empty. | List<String> of texts is empty
        The screen is 15". | The display measures 15"
        The screen is 15 inches. | The display measures 15"
        Yes differs from no. | ‘Yes’ is not ‘no’
        first_ comes before init. | __init__ runs first_
        The method precedes main. | __init__ precedes __main__
    """),
    ],
)
def test_sentences_that_look_like_markup_are_unchanged(text, answer):
    assert parse_answer(answer, text=text) == [Item(answer)]


@parametrize(
    "raw", [f"1. {ONE}\n2. {TWO[:20]}", f'["{ONE}", "{TWO[:20]}', f"{ONE}\n{TWO[:20]}"]
)
@each_line("""
    finish, reason
    length | cut_off
    MAX_TOKENS | cut_off
    model_length | cut_off
    content_filter | filtered
    sensitive | filtered
    abort | failed
    tool_calls | unknown_end
     | unknown_end
""")
def test_a_possibly_truncated_sentence_is_dropped(raw, finish, reason):
    assert parse_answer(raw, text=TEXT, finish=finish) == [
        Item(ONE),
        Item(TWO[:20], reason),
    ]


@parametrize("finish", ["", "tool_calls", "length", "content_filter", "other"])
def test_valid_json_is_complete_whatever_its_finish_reason(finish):
    sentences = json.dumps({"sentences": [ONE, TWO]})
    for raw in (
        sentences,
        f"Here you are:\n```json\n{sentences}\n```",
        f'["{ONE}", "{TWO}"]',
    ):
        assert kept(raw, finish=finish) == [ONE, TWO]
    kinds = json.dumps(
        {"sentences": [{"kind": "negation", "sentence": text} for text in (ONE, TWO)]}
    )
    items = parse_hard_negatives(kinds, text=TEXT, finish=finish, size=2)
    assert items == [Item(text, change="negation") for text in (ONE, TWO)]
    assert reasons(f'{sentences}\n["{ONE}", "{TWO[:20]}', finish=finish)[:2] == [
        None,
        None,
    ]
    assert {*reasons(sentences, finish="refusal")} == {"refusal"}


@parametrize(
    "raw",
    [
        *text_lines(rf"""
        <think>So.</think>1. negation: {ONE}\n2. Number change – {TWO}
        - [negation] {ONE}\n- (number) {TWO}
        **Negation:**\n{ONE}\n\n**Number:**\n{TWO}
        1. Negation\n   {ONE}\n2. Number\n   {TWO}
        | kind | sentence |\n|---|---|\n| negation | {ONE} |\n| number | {TWO} |
    """),
        f'Sure!\n```json\n[{{"kind": "negation", "sentence": "{ONE}"}}, '
        f'{{"kind": "number", "sentence": "{TWO}"}}]\n```\nEnjoy!',
    ],
)
def test_hard_negatives_name_their_kind_in_any_format(raw):
    items = parse_hard_negatives(raw, text=TEXT, finish="stop", size=2)
    assert [item for item in items if item.reason is None] == [
        Item(ONE, change="negation"),
        Item(TWO, change="number"),
    ]


def test_sentences_beyond_the_requested_size_are_dropped():
    raw = f"1. {ONE}\n2. {TWO}\n3. {THREE}"
    assert reasons(raw, size=2) == [None, None, "beyond_size"]
    assert reasons(raw, size=5) == [None, None, None]


QUOTING, OFFERS = (
    f'The firm belongs to "{name}".' for name in ("the two sisters", "The Two Sisters")
)
SISTERS = "It belongs to two sisters."


@parametrize(
    "raw, text, expected",
    [
        *values(
            r"""
                "crash on start\nfails at launch" | App crashes at startup | ['crash on start', 'fails at launch']
                "1. Someone\xa0 plays\u3000the x² guitar." | TEXT | ['Someone plays the x² guitar.']
                １．他说：“好，我去！”（改写） | 他说：“好，我来！” | ['他说：“好，我去！”']
                "\ufeff1\u200b. E\u0301l paga." | Él cobra. | ['Él paga.']
                "Lo siento, no pue\xaddo ayudar con eso. De\u0301sole\u0301." | Él cobra. | []
                "1. a\x00b \ud800c" | TEXT | ['a�b �c']
                '["He said \\"no\\".", "A\\u00e9\\nB"]' | TEXT | ['He said "no".', 'Aé B']
                ['it's a dog', 'He said "hi" to me'] | TEXT | ["it's a dog", 'He said "hi" to me']
                "1. Someone plays it;\n2. He plays;" | TEXT | ['Someone plays it', 'He plays']
                "1. Someone plays;\n2. He plays\n3. She plays" | TEXT | ['Someone plays;', 'He plays', 'She plays']
                1. "Someone "else" plays." | TEXT | ['Someone "else" plays.']
                1. 'Someone's guitar plays.' | TEXT | ["Someone's guitar plays."]
                1. 'Someone' plays the 'guitar' | TEXT | ["'Someone' plays the 'guitar'"]
                "Wait for me.\nHold on to it." | TEXT | ['Wait for me.', 'Hold on to it.']
                "No other man plays.\nHe plays." | TEXT | ['No other man plays.', 'He plays.']
                He ran; I sat. She ran; we sat. | It ran; you sat. | ['He ran; I sat.', 'She ran; we sat.']
            """,
            TEXT=TEXT,
        ),
        ("Someone plays\nthe guitar.", TEXT, [ONE]),
        (
            "| In | Out |\n|---|---|\n| One is. | Two is. |\n| It is. |",
            "It is.",
            ["One is.", "Two is."],
        ),
        (
            f"1. {QUOTING}\n2. {SISTERS}",
            "Two sisters own the company.",
            [QUOTING, SISTERS],
        ),
        (
            json.dumps([OFFERS, SISTERS]),
            "Two sisters own the company.",
            [OFFERS, SISTERS],
        ),
        (
            json.dumps({"answer": f'You could say "{SISTERS}"'}),
            "Two sisters own the company.",
            [SISTERS],
        ),
        (f"1. {ZH_ONE[:-1]}；\n2. {ZH_TWO}", ZH_TEXT, [ZH_ONE[:-1], ZH_TWO]),
    ],
)
def test_the_sentences_of_small_answers(raw, text, expected):
    assert kept(raw, text) == expected


@parametrize(
    "raw, text, expected",
    [
        ("I like it (very much (really))", "I enjoy it a lot", ["I like it"]),
        ("Someone *plays* **the** guitar", TEXT, ["Someone plays the guitar"]),
        ("他**非常**喜欢音乐", "他很爱听音乐", ["他非常喜欢音乐"]),
        ("__Someone plays__", TEXT, ["Someone plays"]),
        ("_Set the_field to 1_", "Put 1 in it", ["Set the_field to 1"]),
        (
            "‘Someone doesn’t play the dogs’ song’",
            TEXT,
            ["Someone doesn’t play the dogs’ song"],
        ),
        (
            "Der große weiße Spaß heißt Straße -> Die kleine graue Gasse ist öde.",
            "Der große weiße Spaß heißt Straße.",
            ["Die kleine graue Gasse ist öde."],
        ),
    ],
)
def test_marks_and_remarks_are_removed_whole(raw, text, expected):
    assert kept(f"1. {raw}", text) == expected


def test_a_paragraph_is_split_by_the_sentences_of_the_text():
    paragraph = "A man plays. Someone strums. A guy makes music."
    assert kept(paragraph) == ["A man plays.", "Someone strums.", "A guy makes music."]
    assert kept(paragraph, size=1) == [paragraph]
    four = "He came. He saw. She came. She saw."
    assert kept(four, "They came. They saw.", size=2) == [
        "He came. He saw.",
        "She came. She saw.",
    ]
    assert kept(four, "They came. They saw.", size=3) == [four]


def test_dropped_pieces_are_shortened():
    (item,) = parse_answer("<think>" + "word " * 1000, text=TEXT)
    assert len(item.text) == 500
    assert item.text.endswith("…")


FINISHES = {
    "complete": "stop STOP end_turn eos_token stop_sequence COMPLETE endTurn FINISH_REASON_STOP reason_stop",
    "cut": "length MAX_TOKENS model_length model_context_window_exceeded max-tokens maxTokens token_limit",
    "refused": "refusal",
    "filtered": "content_filter SAFETY sensitive RECITATION PROHIBITED_CONTENT guardrail_intervened",
    "failed": "error ERROR abort network_error cancelled MALFORMED_FUNCTION_CALL",
    "unknown": f"tool_calls function_call OTHER FINISH_REASON_UNSPECIFIED null 停止 \ud800 {'x' * 9999}",
}


@parametrize("ending, words", FINISHES.items(), ids=FINISHES)
def test_finish_reasons_of_many_servers(ending, words):
    assert {word: ending_of(word) for word in words.split()} == dict.fromkeys(
        words.split(), ending
    )


@parametrize("rule", LINE_RULES, ids=lambda rule: rule.example)
def test_rules_of_lines(rule):
    last = parse_answer(rule.example, text="The man plays music.", size=2)[-1]
    *_, line = rule.example.split("\n")
    if rule.outcome == JOINED:
        assert last.text == " ".join(rule.example.split())
    else:
        assert (last.reason, line.endswith(last.text)) == (rule.outcome, True)
