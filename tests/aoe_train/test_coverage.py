"""Warnings of texts in a language that the backbone doesn't know."""

import pytest

import aoe_train
from aoe_train import Encoder
from aoe_train.model.tokens.coverage import language_warning, languages

TEXTS = {
    "English": ["How do I locate my card?", "The editor crashes when I save a file.", "Where is my refund?"],
    "code": [
        "fn main() { let value: Vec<u8> = read_file(path)?; }",
        "error[E0308]: mismatched types in match",
    ],
    "German": ["Die Datei kann nicht gespeichert werden", "Meine Karte wurde im Geschäft abgelehnt"],
    "Spanish": [
        "No se puede guardar el archivo porque el disco está lleno",
        "La pantalla se apaga de repente",
    ],
    "Russian": ["Не удаётся сохранить файл", "Экран внезапно гаснет"],
    "Korean": ["파일을 저장할 수 없습니다", "화면이 갑자기 꺼집니다"],
    "Chinese": ["无法保存文件，磁盘已满", "打开编辑器时窗口崩溃，菜单显示错误"],
    "Japanese": ["ファイルを保存できません", "画面が突然消えます"],
    "too short": ["ok"],
    "no letters": ["12 345"] * 20,
}
KNOWN = ("English", "code", "too short", "no letters")


@pytest.mark.parametrize("language", TEXTS)
def test_languages_of_an_english_model(minilm, language):
    warning = language_warning(Encoder.load(minilm).tokenizer, TEXTS[language], "minilm")
    assert (warning is None) == (language in KNOWN), warning
    assert warning is None or "multilingual-e5-small" in warning


@pytest.mark.parametrize("language", ["German", "English"])
def test_an_index_of_texts_in_an_unknown_language_warns(language, minilm, tmp_path, capsys):
    aoe_train.index(TEXTS[language], model=minilm, out=tmp_path / "index", cache=language == "German")
    assert ("hardly knows the language" in capsys.readouterr().err) == (language == "German")


def test_languages_are_named_from_a_tenth_of_the_texts_on():
    texts = [*TEXTS["German"] * 10, *TEXTS["Chinese"] * 2, TEXTS["English"][0]]
    assert languages(texts) == ["de", "zh"]
    assert languages([]) == []
