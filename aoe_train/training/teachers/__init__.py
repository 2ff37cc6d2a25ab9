"""Models beside the one that is trained, whose vectors of the training texts are made once.

```
adviser   who it is: a model, or a file of vectors; how its vectors are compared, its prompts
   └► precompute_vectors   all advisers of a run, and the rows ─► AdviceStore
         └► given, scores   a file of texts and vectors, or of rows and scores, that a person brings
```
"""

from aoe_train.training.teachers.teacher import Teacher, scores_identity, teachers_of
from aoe_train.training.teachers.vectors import check_teachers, placeholder_vectors, precompute_vectors

__all__ = [
    "Teacher",
    "check_teachers",
    "placeholder_vectors",
    "precompute_vectors",
    "scores_identity",
    "teachers_of",
]
