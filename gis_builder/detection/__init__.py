"""From a thread to a verdict: whether its issue was closed as a duplicate, of which issues, and why.

```
lexicon, languages/*.toml           words and phrases, and their codes
└ issue_references                  references to issues
  └ phrase_codes, rules             sentences as strings of codes, and patterns over these
    └ page, claim_reader, reading   the claims of a text
      └ statements                  the texts of a thread with speakers and times
        └ claim_tracker             claims confirmed, disputed or revoked
          └ decision, explain       the verdict and its explanation
            └ detector              the verdicts of a store
```
"""
