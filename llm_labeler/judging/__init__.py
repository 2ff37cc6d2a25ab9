"""Judging: LLMs vote on candidates without knowing who proposed them as what; votes become labels.

```
candidates ──questions──► Ask … raw answer ──votes──► Judgement ──judges──► Judges
                         └──ensemble──► Pair, with a reason where turned down
```
"""
