"""Texts in a language that the model doesn't know."""

from pathlib import Path

import pytest

import aoe_train

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
def test_an_index_of_texts_in_an_unknown_language_warns(language, minilm, tmp_path, capsys):
    aoe_train.index(TEXTS[language], model=minilm, out=tmp_path / "index", cache=False)
    told = capsys.readouterr().err
    assert (
        ("hardly knows the language" in told) == ("multilingual-e5-small" in told) == (language not in KNOWN)
    )


def test_a_cards_languages_are_those_of_a_tenth_of_the_texts(bert: Path, tmp_path: Path):
    texts = [*TEXTS["German"] * 10, *TEXTS["Chinese"] * 2, TEXTS["English"][0]]
    rows = [{"text1": one, "text2": other, "score": len(one) % 5} for one in texts for other in texts[:2]]
    aoe_train.train(rows, backbone=bert, out=tmp_path / "m", epochs=1, preset="cosent", progress=False)
    card = (tmp_path / "m/README.md").read_text()
    assert "language:\n- de\n- zh\n" in card
