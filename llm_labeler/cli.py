"""The `label` command line: one command for each public function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm_labeler import api
from pairkit.base.cli.commands import add_command, application, run_command
from pairkit.base.cli.options import Option
from pairkit.base.cli.terminal import next_step, show
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from llm_labeler.runs.run_result import Labelled

app = application(
    "label",
    "Make pairs of sentences with the same and with opposite meaning from unlabelled text, with LLMs.",
)


@SHARED(
    dry_run=Option(
        "Estimate calls, tokens and money, and stop.", panel="Limits", main=True
    )
)
def _generate(
    arguments: dict[str, Any],
    *,
    dry_run: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> Labelled | None:
    if not dry_run:
        return api.generate(**arguments)
    show(api.plan(**arguments), json=json, quiet=quiet)
    next_step("start the run", run_command("label", "generate"), quiet=quiet)
    return None


add_command(
    app,
    api.generate,
    "label generate -d data/sample_sentences.txt --llm wordnet --out pairs",
    "label generate -d data/sample_sentences.txt --llm chatgpt --task triplet --out triplets",
    "label generate -d data/sample_sentences.txt --llm chatgpt,llama --max-cost 5 --out written",
    "label generate -d data/sample_requests.csv --columns text=text --llm llama --dry-run --out requests",
    run=_generate,
)
add_command(
    app,
    api.parse,
    "label parse --work pairs.work --out parsed",
    "label parse --work written.work --out strict --aggregation weighted",
)
add_command(
    app,
    api.judge,
    "label judge -d pairs --llm chatgpt,llama,chatglm --out judged",
    "label judge -d demo --llm chatgpt --draw 500 --max-cost 1 --out judged-demo",
)
add_command(
    app,
    api.evaluate,
    "label evaluate --work pairs.work --gold pairs.review",
    "label evaluate --work pairs.work --gold pairs.review --gold-threshold 3 --json",
)
add_command(
    app,
    api.show,
    "label show row:17 --work pairs.work",
    "label show 'Why do some people catch a cold every winter?' --work pairs.work",
    json=False,
)
add_command(app, api.report, "label report --work pairs.work")
add_command(app, api.llms, "label llms", json=False)
