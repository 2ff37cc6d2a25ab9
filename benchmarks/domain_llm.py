"""The row of your LLM in the table of domains without labels: it labels, a model learns, people judge.

    python benchmarks/domain_llm.py --out FOLDER --llm chatgpt --max-cost 5         # with OPENAI_API_KEY set
    python benchmarks/domain_llm.py --out FOLDER --llm llama --set llm.llama.base_url=http://localhost:8000/v1
    python benchmarks/domain_llm.py --out FOLDER --llm NAME --config llms.toml   # as in docs/howto/own-llm.md
        [--texts 2000] [--domains medicine,bugs,banking] [--seeds 0,1,2] [--data FOLDER]

The LLM writes triplets of 2,000 sentences of each domain: MedQuAD's answers, titles of Eclipse and Firefox,
and questions to a bank. all-MiniLM-L6-v2 is trained on them by the preset `domain`. Then people's labels
judge: RQE (area under the ROC curve), duplicates whose original is the nearest title (R@1), questions whose
nearest has the same intent (P@1), and STS-B test for what the model forgot; all times 100.

--llm wordnet is rules, and costs nothing. The same command continues a run that was stopped: answers and
figures are kept in FOLDER, which also gets the table, FOLDER/table.md. Copy your row to benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from domain import AS_IT_COMES, Judge, by_originals, by_rqe, by_stsb, figures, reports
from peers_aoe.environments import add_flags
from peers_aoe.texts import table
from runs import Ledger, spread

import aoe_train
import llm_labeler

ROWS = "pairs/triplet"


def main() -> None:
    """Label, train and judge what has no figures yet, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--llm", required=True, help="chatgpt, llama, chatglm, wordnet or a name of --config")
    parser.add_argument("--config", type=Path, help="a TOML file with [llm.NAME]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--max-cost", type=float, help="US dollars for all domains together")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--domains", default=",".join(DOMAINS))
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    domains, ledger = options.domains.split(","), Ledger(options.out)
    for domain in domains:
        folder = options.out / f"{domain}-{options.llm}-{options.texts}"
        folder.mkdir(parents=True, exist_ok=True)
        texts, judge = DOMAINS[domain]
        drawn = random.Random(0).sample(sorted(set(texts(options.data))), options.texts)  # noqa: S311
        made = llm_labeler.generate(
            drawn,
            llms=options.llm,
            out=folder / "pairs",
            config=options.config,
            settings=dict(pair.split("=", 1) for pair in options.settings),
            max_cost=None if options.max_cost is None else options.max_cost / len(domains),
        )
        print(made)
        judges = [judge(options.data), by_stsb(options.data)]
        for name, way, seeds in ((AS_IT_COMES, AS_IT_COMES, "0"), (options.llm, "domain", options.seeds)):
            for seed in map(int, seeds.split(",")):
                run = {"name": name, "domain": domain, "seed": seed, "texts": options.texts}
                ledger.once(run, lambda place: figures(place, folder, ROWS, way, seed, judges))  # noqa: B023 - called at once
    text = "\n".join(lines(ledger, domains, options.texts)) + "\n"
    (options.out / "table.md").write_text(text, encoding="utf-8")
    print(text)


def lines(ledger: Ledger, domains: list[str], texts: int) -> list[str]:
    """A Markdown table: a row for the backbone and for each LLM, mean and deviation over the seeds."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for entry in ledger.read():
        run = entry["run"]
        for name, figure in entry["figures"].items() if run["texts"] == texts else ():
            of_domain = found.setdefault(run["name"], {}).setdefault(run["domain"], {})
            of_domain.setdefault(name, []).append(figure)
    names = [(domain, name) for domain in domains for name in found[AS_IT_COMES][domain]]
    told = [f"| rows by | {' | '.join(f'{domain}: {name}' for domain, name in names)} |"]
    told.append("|---" * (len(names) + 1) + "|")
    for llm, of_llm in found.items():
        cells = [of_llm.get(domain, {}).get(name) for domain, name in names]
        told.append(f"| {llm} | {' | '.join(spread(cell) if cell else '' for cell in cells)} |")
    return told


def sentences(data: Path) -> list[str]:
    """Sentences of MedQuAD's answers."""
    with gzip.open(data / "domain" / "medquad-sentences.txt.gz", "rt", encoding="utf-8") as found:
        return [line.strip() for line in found if line.strip()]


def titles(data: Path) -> list[str]:
    """Titles of reports."""
    return [row[f"title{side}"] for row in reports(data) for side in (1, 2)]


def questions(data: Path) -> list[str]:
    """Questions to a bank; those of the test set are not among them."""
    return [row["text"] for row in table(data / "domain" / "banking77-train.tsv")]


def by_nearest_title(data: Path) -> Judge:
    """R@1 of duplicates, of the figures that `by_originals` has."""
    judge = by_originals(data)
    return lambda encoder: {name: figure for name, figure in judge(encoder).items() if name.endswith("R@1")}


def by_intents(data: Path) -> Judge:
    """Share of the test questions whose nearest other one has the same intent."""
    rows = table(data / "domain" / "banking77-test.tsv")
    intents = np.array([row["category"] for row in rows])

    def judge(encoder: aoe_train.Encoder) -> dict[str, float]:
        vectors = encoder.encode([row["text"] for row in rows], normalize=True, progress=False)
        near = vectors @ vectors.T
        np.fill_diagonal(near, -np.inf)
        return {"P@1": 100 * float((intents[near.argmax(axis=1)] == intents).mean())}

    return judge


# Where the sentences are from, and what judges.
DOMAINS: dict[str, tuple[Callable[[Path], list[str]], Callable[[Path], Judge]]] = {
    "medicine": (sentences, by_rqe),
    "bugs": (titles, by_nearest_title),
    "banking": (questions, by_intents),
}

if __name__ == "__main__":
    main()
