"""From a thread to a verdict: whether its issue was closed as a duplicate, of which issues, and why.

```
issue_references                          references to issues
└ lexicon, languages/*.toml, rules        sentences as strings of codes of words, and patterns over these
  └ page, claim_reader, reading           the claims of a text
    └ statements                          the texts of a thread with speakers and times
      └ claim_tracker                     claims confirmed, disputed or revoked
        └ claim_weight, decision          the weights of claims, and the verdict
          └ explain                       its explanation
            └ detector, verdict_files     the verdicts of a store
```
"""
