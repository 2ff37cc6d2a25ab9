"""Sets of documents with real queries for `benchmarks/retrieval.py`, from clones of public repositories.

    python benchmarks/retrieval_sets.py --clones FOLDER --out FOLDER

`--clones` has a clone of each of these repositories of GitHub, under its name:

- MedQuAD, LiveQA_MedicalTask_TREC2017 (abachaa): sections of health pages, graded for consumers' questions
- COVID-QA (deepset-ai): 98 scientific articles in passages; questions that experts wrote for an article
- EMNLP-2021-Findings (abhi1nandy2): the manuals of a telephone and a television; questions that people wrote
- cranvectors (xyxxyyxy): Cranfield, 1,400 abstracts of aerodynamics; questions of researchers, graded
- Information_Retrieval_Project (h1den96): CISI, 1,460 abstracts of library science; requests of researchers

Each set becomes a folder: the documents as Markdown, `corpus.jsonl` (the sections that a search finds),
`queries.jsonl` and `qrels/test.tsv`, as BEIR has them.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from runs import argument_parser

PASSAGE_CHARS = 1000
MANUAL_QUESTION = r'"Section Hierarchy": "([^"]*)",[^{]*?"Question": "([^"]*)"'


@dataclass
class Collection:
    """Documents of sections, queries, and the grade of each relevant section, by query and section."""

    # Section, heading, text.
    documents: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    grades: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(
        self, document: str, title: str, section: str, heading: str, text: str
    ) -> None:
        """Add a section to a document."""
        self.titles[document] = title
        self.documents.setdefault(document, []).append((section, heading, text))

    def write(self, folder: Path) -> None:
        """Write the documents, and the files of BEIR."""
        (folder / "documents").mkdir(parents=True)
        (folder / "qrels").mkdir()
        corpus = []
        for document, sections in self.documents.items():
            pages = [f"# {self.titles[document]}\n"] if self.titles[document] else []
            for section, heading, text in sections:
                pages.append(f"## {heading}\n\n{text}\n" if heading else f"{text}\n")
                title = " > ".join(filter(None, [self.titles[document], heading]))
                corpus.append({"_id": section, "title": title, "text": text})
            (folder / "documents" / f"{document}.md").write_text(
                "\n".join(pages), encoding="utf-8"
            )
        judged = {query for query, _ in self.grades}
        queries = [
            {"_id": key, "text": text}
            for key, text in self.queries.items()
            if key in judged
        ]
        write_lines(folder / "corpus.jsonl", corpus)
        write_lines(folder / "queries.jsonl", queries)
        rows = [
            f"{query}\t{section}\t{grade}"
            for (query, section), grade in self.grades.items()
        ]
        lines = ["query-id\tcorpus-id\tscore", *rows]
        (folder / "qrels" / "test.tsv").write_text(
            "\n".join(lines) + "\n", encoding="utf-8"
        )
        print(
            f"{folder.name}: {len(self.titles)} documents, {len(corpus)} sections, {len(queries)} queries"
        )


def main() -> None:
    """Write all sets that don't exist."""
    parser = argument_parser(__doc__)
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for name, read in SETS.items():
        if not (options.out / name).exists():
            read(options.clones).write(options.out / name)


def write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows as JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def health_pages(clones: Path) -> Collection:
    """LiveQA-Med: the judged sections of MedQuAD, each with its question as heading."""
    found = Collection()
    archive = zipfile.ZipFile(
        clones / "MedQuAD" / "QA-TestSet-LiveQA-Med-Qrels-2479-Answers.zip"
    )
    names = {
        Path(name).name[:9]: name for name in archive.namelist() if "MACOSX" not in name
    }
    csv.field_size_limit(10**9)
    table = csv.DictReader(
        io.StringIO(archive.read(names["All-2479-"]).decode("utf-8"))
    )
    for row in table:
        question, _, rest = row["Answer"].removeprefix("Question: ").partition("\nURL:")
        question = re.sub(r"\s*\(Also called:.*", "", question).replace(" ?", "?")
        answer = rest.partition("Answer:")[2]
        key = row["AnswerID"].removesuffix(".txt")
        found.add(key.rsplit("_", 1)[0], "", key, question, " ".join(answer.split()))
    grades = {"2-Related": 1, "3-Incomplete": 2, "4-Excellent": 3}
    for line in archive.read(names["All-qrels"]).decode("utf-8").split("\n"):
        if line.strip():
            query, verdict, name = line.split()
            if grade := grades.get(verdict):
                found.grades[query, name.removesuffix(".txt")] = grade
    path = (
        clones
        / "LiveQA_MedicalTask_TREC2017/TestDataset/TREC-2017-LiveQA-Medical-Test.xml"
    )
    for question in ET.parse(path).getroot().iter("NLM-QUESTION"):  # noqa: S314 - the user's own clone
        parts = [
            question.findtext(f".//{part}") or "" for part in ("SUBJECT", "MESSAGE")
        ]
        key = re.sub(r"\D", "", question.get("questionid") or question.get("qid") or "")
        found.queries[key] = " ".join(" ".join(parts).split())
    return found


def articles(clones: Path) -> Collection:
    """COVID-QA: articles cut into passages; the one with the answer is relevant."""
    found = Collection()
    path = clones / "COVID-QA/data/question-answering/200423_covidQA.json"
    for number, entry in enumerate(json.loads(path.read_text("utf-8"))["data"]):
        for paragraph in entry["paragraphs"]:
            context = paragraph["context"]
            title = " ".join(context.split("\n", 1)[0].split())
            keys = []
            for start, end in passages(context):
                key = f"{number}-{start}"
                keys.append((start, end, key))
                found.add(
                    str(number), title, key, "", " ".join(context[start:end].split())
                )
            for question in paragraph["qas"]:
                query = str(question["id"])
                found.queries[query] = " ".join(question["question"].split())
                for answer in question["answers"]:
                    places = (
                        key
                        for start, end, key in keys
                        if start <= answer["answer_start"] < end
                    )
                    found.grades |= {(query, key): 1 for key in places}
    return found


def passages(context: str) -> Iterator[tuple[int, int]]:
    """Start and end of each passage: whole sentences after the article's header, up to a length."""
    first = max(context.find("Abstract:"), 0)
    start = first
    for sentence in re.finditer(r".+?(?:[.?!]\s+|\n\n|$)", context[first:], re.DOTALL):
        end = first + sentence.end()
        ends_paragraph = (
            context[:end].endswith("\n\n") and end - start > PASSAGE_CHARS // 4
        )
        if end - start > PASSAGE_CHARS or ends_paragraph:
            yield start, end
            start = end
    if context[start:].strip():
        yield start, len(context)


def manuals(clones: Path) -> Collection:
    """The manuals of a Galaxy S10 and a television; the section that a question names is relevant."""
    found, data = Collection(), clones / "EMNLP-2021-Findings" / "data"
    sections_of: dict[tuple[str, str], list[str]] = {}
    for device, name in (
        ("phone", "s10_manual_corpus.json"),
        ("tv", "smart_tv_remote_manual_corpus.json"),
    ):
        for key, section in json.loads((data / name).read_text("utf-8")).items():
            title = " ".join(section["title"].split())
            lines = [line for line in section["text"] if line.strip() != title]
            chapter = section.get("section_hierarchy", device).split(">")[0]
            if lines:
                found.add(
                    chapter,
                    "",
                    f"{device}-{key}",
                    title,
                    " ".join(" ".join(lines).split()),
                )
                sections_of.setdefault((device, title.casefold()), []).append(
                    f"{device}-{key}"
                )
    for device, path, question in manual_questions(data):
        keys = sections_of.get((device, path.rsplit(">", 1)[-1].strip().casefold()), [])
        if len(keys) == 1:
            found.queries[question] = question
            found.grades[question, keys[0]] = 1
    return found


def manual_questions(data: Path) -> Iterator[tuple[str, str, str]]:
    """Device, section and text of each question."""
    with (data / "s10_50_questions.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            yield "phone", row["section_path"], " ".join(row["question"].split())
    archive = zipfile.ZipFile(data / "smart_remote_QA.zip")
    for name in sorted(archive.namelist()):
        if name.startswith("Normal") and name.endswith(".json"):
            text = archive.read(name).decode("utf-8")  # not always valid JSON
            for path, question in re.findall(MANUAL_QUESTION, text):
                yield "tv", path, " ".join(question.split())


def smart(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Number and fields of each record of a file in the format of SMART."""
    for record in re.split(r"^\.I\s+", text, flags=re.MULTILINE)[1:]:
        number, *parts = re.split(r"^\.([A-Z])[ \t]*\n", record, flags=re.MULTILINE)
        fields: dict[str, str] = {}
        for name, value in zip(parts[::2], parts[1::2], strict=True):
            fields.setdefault(name, " ".join(value.split()))
        yield number.strip(), fields


def abstracts(documents: str, queries: str) -> Collection:
    """Titles with abstracts."""
    found = Collection()
    for number, fields in smart(documents):
        title = fields.get("T", "")
        text = fields.get("W", "").removeprefix(title).strip()
        if title and text:
            found.add(number, title, number, "", text)
    for position, (_, fields) in enumerate(smart(queries), 1):
        if "W" in fields:
            found.queries[str(position)] = fields["W"]
    return found


def cranfield(clones: Path) -> Collection:
    """Cranfield with its four grades of relevance."""
    folder = clones / "cranvectors"
    found = abstracts(
        (folder / "cran.all.1400").read_text("utf-8"),
        (folder / "cran.qry").read_text("utf-8"),
    )
    for line in (folder / "cranqrel").read_text("utf-8").split("\n"):
        if line.strip():
            query, number, code = line.split()
            if number in found.documents and 1 <= int(code) <= 4:
                found.grades[query, number] = 5 - int(code)
    return found


def cisi(clones: Path) -> Collection:
    """CISI, relevant or not."""
    folder = clones / "Information_Retrieval_Project"
    found = abstracts(
        (folder / "CISI.ALL").read_text("utf-8"),
        (folder / "CISI.QRY").read_text("utf-8"),
    )
    for line in (folder / "CISI.REL").read_text("utf-8").split("\n"):
        if line.strip():
            query, number = line.split()[:2]
            if number in found.documents:
                found.grades[query, number] = 1
    return found


SETS: dict[str, Callable[[Path], Collection]] = {
    "health": health_pages,
    "articles": articles,
    "manuals": manuals,
    "cranfield": cranfield,
    "cisi": cisi,
}


if __name__ == "__main__":
    main()
