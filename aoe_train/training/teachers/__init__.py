"""Guide and teacher: models beside the trained one, whose vectors of the training texts are made once.

```
teacher   a model, or a file of vectors; how its vectors are compared, its prompts
   └► vectors   all texts of the rows ─► AdviceStore
         └► scores   a file of pairs and their scores, such as a cross-encoder's
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
