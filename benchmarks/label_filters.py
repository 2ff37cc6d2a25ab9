"""What the weakness of a small LLM does to each filter: its answers to every labelling task.

    python benchmarks/label_filters.py FOLDER [--texts 24] [--tokens 60] [--temperature T] [--work DIR]

FOLDER holds a causal language model of transformers, such as SmolLM2-135M-Instruct, which
`aoe_train.load_backbone("smollm2")` leaves in the cache. The texts are invented. Each task is `label
generate` itself with that model in this process, greedy unless a temperature is given. Prints a Markdown
table: for each task and polarity how many answers there were, how many pieces the parser found in them, and
which reason each was turned down for. What was kept is written to DIR/kept.tsv, so that somebody can read
how much of it is right.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import llm_labeler
from llm_labeler.records import Proposal
from llm_labeler.runs.candidates_by_text import proposed
from llm_labeler.store import Store
from llm_labeler.store.workplace import STORE_FILE, recall
from pairkit.app.errors import DataError

SENTENCES = (
    "The ferry to the northern islands leaves every morning at seven.",
    "Two engineers repaired the bridge before the storm arrived.",
    "Patients with a fever should drink plenty of water.",
    "The committee rejected the proposal because it was too expensive.",
    "Her brother sold the old farmhouse to a young couple.",
    "The update deletes temporary files when the program closes.",
    "Bees collect more pollen on warm days than on cold ones.",
    "The museum is closed on Mondays from October to March.",
    "A small leak in the roof damaged three of the paintings.",
    "The driver must show a valid licence at the border.",
    "Most of the villagers get their water from a shared well.",
    "The team won the last four matches without conceding a goal.",
    "This medicine lowers blood pressure within two hours.",
    "The teacher praised the student who finished first.",
    "Heavy rain delayed the harvest by almost three weeks.",
    "The server rejects passwords that are shorter than twelve characters.",
    "The bakery on the corner sells bread from the day before at half price.",
    "Nobody noticed that the back door had been left open.",
    "The new railway line connects the harbour with the airport.",
    "Snow leopards hunt alone and mostly at dusk.",
    "The company moved its headquarters from Lyon to Geneva.",
    "You may return the tickets up to one day before the concert.",
    "The glacier has lost a third of its ice since 1980.",
    "The nurse called the doctor when the alarm went off.",
)
PASSAGES = (
    "The lighthouse was built in 1871 and stands 34 metres tall. It was run by a keeper until 1989.",
    "Sourdough needs no yeast from a shop."
    " Flour and water are left to stand for five days until they bubble.",
    "The tram runs every ten minutes on weekdays. After midnight a bus takes its place.",
    "Gout is caused by crystals of uric acid in a joint. Most attacks begin in the big toe, at night.",
    "To reset the router, hold the button at its back for ten seconds. All settings are lost.",
    "The river rises in the Alps and is 292 kilometres long. It is used by ships only in its lower half.",
    "Members may borrow six books for four weeks. A loan can be extended twice if nobody else waits.",
    "The beetle lays its eggs under the bark of spruces. Its larvae kill the tree within one summer.",
    "The vaccine is given in two doses, one month apart. Children below the age of two get half a dose.",
    "Glass is made of sand, soda and lime. The mixture melts at about 1,500 degrees.",
    "The village has 340 inhabitants and one shop. Its school was closed in 2004.",
    "The program keeps a log of each run in the folder logs. Logs older than a month are deleted.",
    "Rye grows on poor soil where wheat does not. It is sown in September and harvested in July.",
    "The painter lived in Bruges for eleven years. Only nine of her pictures are known today.",
    "A mortgage is a loan that is secured by a house. The bank may sell it if nothing is paid.",
    "Owls fly without a sound because of the soft edges of their feathers. They hear mice under the snow.",
    "The warranty covers faults of the motor for three years. It does not cover the battery.",
    "The dam supplies power to some 80,000 homes. It was damaged by a flood in 1966.",
    "Passports are renewed at the town hall. It takes three weeks and costs 60 euros.",
    "Saffron is the stigma of a crocus. About 150 flowers are needed for one gram.",
    "The comet returns every 76 years. It was last seen from the ground with bare eyes in 1986.",
    "The choir rehearses on Thursdays in the old chapel. New singers are welcome in spring.",
    "Concrete hardens while water binds to cement. It reaches its full strength after about a month.",
    "The marathon begins at the harbour at eight. Runners who need more than six hours are taken out.",
)
TASKS = {"papers": SENTENCES, "triplet": SENTENCES, "query": PASSAGES}


def asked(task: str, texts: tuple[str, ...], entry: dict[str, Any], work: Path) -> tuple[int, list[Proposal]]:
    """How many answers a task brought, and what became of each piece of them."""
    place = work / task
    try:
        llm_labeler.generate(
            [*texts], llms={"small": entry}, task=task, out=place, work=place.with_suffix(".work"), fresh=True
        )
    except DataError as error:  # no pair is left: that is a result, too
        print(f"{task}: {error}", flush=True)
    record, known = recall(place.with_suffix(".work"))
    with Store.open(place.with_suffix(".work") / STORE_FILE) as store:
        found = list(proposed(store, record, {text.text_id: text for text in known}))
    by_id = {about.text.text_id: about.text.text for about in found}
    with (work / "kept.tsv").open("a", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t")
        for about in found:
            for one in about.proposals:
                if one.reason is None:
                    rows.writerow((task, one.polarity, one.change, by_id[one.text_id], one.candidate))
    return sum(sum(about.answers.values()) for about in found), [one for a in found for one in a.proposals]


def main() -> None:
    """Ask, count and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp(prefix="label-filters-"))
    work.mkdir(parents=True, exist_ok=True)
    entry = {"kind": "local", "model": str(given.folder), "max_tokens": given.tokens, "local": True}
    if given.temperature is not None:
        entry["temperature"] = given.temperature
    print(
        "| task | polarity | answers | pieces | kept | turned down |\n|---|---|---|---|---|---|", flush=True
    )
    for task, texts in TASKS.items():
        start = time.process_time()
        answers, pieces = asked(task, texts[: given.texts], entry, work)
        for polarity in ("positive", "negative"):
            of_it = [one for one in pieces if one.polarity == polarity]
            why = Counter(one.reason for one in of_it if one.reason)
            told = ", ".join(f"{reason} {count}" for reason, count in why.most_common())
            kept = len(of_it) - why.total()
            print(f"| {task} | {polarity} | {answers // 2} | {len(of_it)} | {kept} | {told} |", flush=True)
        print(f"{task}: {time.process_time() - start:.0f} s of CPU", flush=True)
    print(f"kept: {work / 'kept.tsv'}")


if __name__ == "__main__":
    main()
