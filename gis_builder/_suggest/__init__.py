"""Which older issues an issue may repeat: asked of an index, told to people, and tried on a tracker's past.

```
suggest ──► candidates (an index or a server ► older issues) ──► sentences, calibration
   └──────► comment (what is written, harmless)
backtest ─► replay (hits, times and verdicts ► what was right) ──► calibration, figure
```
"""
