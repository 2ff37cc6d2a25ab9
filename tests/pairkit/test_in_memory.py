"""Mappings in memory: tables by split, or the columns of one table."""

from pairkit.dataset.reading.in_memory import tables_in_memory
from tests.support.shorthand import table


@table(
    """
    names, splits
    train dev_set | True
    trainA trainB | True
    TRAIN Testing2 | True
    trainA text | False
    trainee values | False
    TRAINED TESTABLE | False
    """,
)
def test_names_of_splits_and_of_columns(names, splits):
    tables = tables_in_memory({name: ["a", "b"] for name in names.split()})
    if splits:
        expected = {name: ["text"] for name in names.split()}
        assert {name: found.columns for name, found in tables.items()} == expected
    else:
        assert tables["train"].columns == names.split()
