"""Models beside the one that is trained, whose vectors of the training texts are made once.

```
adviser   who it is: a model, or a file of vectors; how its vectors are compared, its prompts
   └► consult   all advisers of a run, and the rows ─► AdviceStore
         └► given, scores   a file of texts and vectors, or of rows and scores, that a person brings
```
"""

from aoe_train.training.advisers.adviser import Adviser, advisers_of, scores_identity
from aoe_train.training.advisers.consult import check, consult, imagine

__all__ = ["Adviser", "advisers_of", "check", "consult", "imagine", "scores_identity"]
