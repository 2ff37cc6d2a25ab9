"""From a thread to a verdict: whether its issue was closed as a duplicate, of which issues, and why.

```
lexicon, languages/*.toml         words and phrases, and their codes
└ issue_references, phrase_codes  references; sentences as strings of codes
  └ rules                         patterns over these codes
  └ page, claim_reader, reading   the claims of a text
    └ statements                  the texts of a thread with speakers and times
      └ claim_tracker             claims confirmed, disputed or revoked
        └ decision, explain       the verdict and its explanation
          └ detector              the verdicts of a store
```
"""
