"""Phrases that turn a sentence into its opposite when one takes the other's place; see `patterns`."""

from __future__ import annotations

from llm_labeler._providers.wordnet.patterns import Table

TABLE = Table("""
^ all {s} > no {} @ 0.93
^ all {Jen} {s} > no {} {} @ 0.93
{vzdB} all {s} > {} no {} @ 0.86
{vzdB} all {Jen} {s} > {} no {} {} @ 0.86
all of the > none of the
all of these > none of these
all of them > none of them
everyone <> no one
everybody <> nobody
everything <> nothing
^ every {n} > no {}
^ each {n} > no {}
many {s} > few {} @ 0.85
many {Jen} {s} > few {} {} @ 0.85
many of the > few of the
{vzdgBICP,} few {s} > {} many {} @ 0.88
^ few {s} > many {} @ 0.88
{vzdgBICP,} a few {s} > {} many {} @ 0.78
^ most {s} > few {}
^ most {Jen} {s} > few {} {}
most of the {s} > few of the {} @ 0.85
^ some {s} {MvBHIW} > no {} {} @ 0.88
^ no {s} > many {}
none of the > all of the
always <> never @ 0.93
{BMHnsPb,} often {veJzd} > {} rarely {} @ 0.88
{BMHnsPb,} frequently {veJzd} > {} rarely {} @ 0.88
^ often > rarely
usually > rarely @ 0.9
typically > rarely @ 0.85
generally > rarely @ 0.85
{BMHnsPb,} commonly {veJzd} > {} rarely {} @ 0.88
rarely > often
seldom > often
sometimes {ezvdJg} > never {} @ 0.88
{zvdgMBb} more {J} > {} less {} @ 0.88
{BbvzR} less {J} > {} more {} @ 0.88
{zvdgIH} more {s} > {} fewer {} @ 0.88
{zvdgIH} fewer {s} > {} more {} @ 0.88
more common > less common @ 0.9
less common > more common @ 0.9
more often > less often @ 0.9
less often > more often @ 0.9
more likely > less likely @ 0.92
less likely > more likely @ 0.92
most common > least common @ 0.92
most commonly > least commonly @ 0.9
most likely > least likely @ 0.9
most often > least often @ 0.85
most important > least important @ 0.92
most effective > least effective @ 0.92
least {J} > most {} @ 0.9
more than {#} <> fewer than {} @ 0.88
less than {#} > more than {} @ 0.88
at least {#} <> at most {} @ 0.85
too much <> too little @ 0.9
too many <> too few @ 0.9
{nsvzdeg,J} without {Jns} > {} with {} @ 0.88
without a > with a @ 0.82
without an > with an @ 0.82
without the > with the @ 0.82
without any > with some @ 0.82
before {DJnsgP} <> after {} @ 0.8
above {Dn#} <> below {} @ 0.85
inside {D} <> outside {} @ 0.85
^ yes , <> no ,
increase* {DnsJICRC.,} <> decrease* {} @ 0.9
increase+ in <> decrease+ in @ 0.85
increased {ns} <> decreased {} @ 0.82
reduce* {DnsJI} > increase* {} @ 0.9
decrease* {DnsJI} > increase* {} @ 0.9
lower* {D} > raise* {} @ 0.88
raise* {D} > lower* {} @ 0.85
cause* {DJnseg} > prevent* {} @ 0.85
prevent* {DJnseg} > cause* {} @ 0.85
improve* {DJns.,} <> worsen* {} @ 0.9
gain* {Dn} <> lose* {} @ 0.85
strengthen* <> weaken* @ 0.9
include* {DJns#e} > exclude* {} @ 0.8
accept* {DJns} <> reject* {} @ 0.85
encourage* <> discourage* @ 0.9
enable* <> disable* @ 0.85
agree* with <> disagree* with @ 0.92
appear* {IR.} <> disappear* {} @ 0.8
start* {g} <> stop* {} @ 0.85
open* {D} <> close* {} @ 0.85
install* <> uninstall* @ 0.85
add* {Dns} to > remove* {} from @ 0.85
love* {DP} <> hate* {} @ 0.9
like* {T} <> hate* {} @ 0.85
allow* {DPns} > forbid* {} @ 0.8
succeed* {.,I} > fail* {} @ 0.85
remember* {TDP} <> forget* {} @ 0.85
similar to <> different from @ 0.88
the same {ns} > a different {} @ 0.75
able to > unable to @ 0.92
unable to > able to @ 0.92
likely {TIS.} <> unlikely {} @ 0.9
{Bb} possible <> {} impossible @ 0.9
{Bb} common {.,InsC} > {} rare {} @ 0.92
very common > very rare @ 0.92
{DI} common {ns} > {} rare {} @ 0.86
{DBbRJvzns} rare {nsI.,CJ} > {} common {} @ 0.9
in rare cases <> in most cases @ 0.88
uncommon > common @ 0.9
{nsPvzgdBbDe,} normal {ns.,C} <> {} abnormal {} @ 0.87
safe <> unsafe @ 0.92
dangerous > harmless @ 0.92
harmful <> harmless @ 0.92
healthy <> unhealthy @ 0.9
effective <> ineffective @ 0.92
important > unimportant @ 0.87
necessary <> unnecessary @ 0.9
available <> unavailable @ 0.92
useful <> useless @ 0.9
helpful <> unhelpful @ 0.9
active <> inactive @ 0.85
severe > mild @ 0.88
mild > severe @ 0.88
{BDIvz} serious > {} minor @ 0.86
high {nsICJ.,} <> low {} @ 0.87
higher {nsICJ.,} <> lower {} @ 0.88
highest <> lowest @ 0.88
large {nsICJ.,} <> small {} @ 0.86
larger {nsICJ.,} <> smaller {} @ 0.88
big {nsICJ.,} > small {} @ 0.86
bigger <> smaller @ 0.88
long {nsJ.,} > short {} @ 0.82
{BbRIvzJ} longer {nsIJ.,} <> {} shorter {} @ 0.86
older {nsI.,} <> younger {} @ 0.82
stronger <> weaker @ 0.9
strong {ns.,C} <> weak {} @ 0.88
faster <> slower @ 0.9
quickly <> slowly @ 0.92
rapidly > slowly @ 0.92
gradually > suddenly @ 0.9
suddenly > gradually @ 0.88
early {nsIJ.,} > late {} @ 0.85
earlier {IC.,} <> later {} @ 0.86
hot {n.,CI} <> cold {} @ 0.85
wet <> dry @ 0.87
dry {n} > wet {} @ 0.8
easy {TICns.,} <> difficult {} @ 0.92
easier <> harder @ 0.9
easily > with difficulty @ 0.8
hard {T} > easy {} @ 0.9
simple {ns.,} <> complicated {} @ 0.87
good {nsICT.,} <> bad {} @ 0.88
better {I.,TC} <> worse {} @ 0.88
get* worse > get* better @ 0.93
get* better > get* worse @ 0.93
best {ns} <> worst {} @ 0.86
well . > badly . @ 0.87
poorly {.,} <> well {} @ 0.85
full {n.I} > empty {} @ 0.75
deep {ns.,} <> shallow {} @ 0.86
thick {ns.,C} <> thin {} @ 0.86
wide {ns.,} <> narrow {} @ 0.8
internal <> external @ 0.85
inner <> outer @ 0.85
major {nsJ} <> minor {} @ 0.87
permanent <> temporary @ 0.9
painful <> painless @ 0.92
visible <> invisible @ 0.9
present {.,I} <> absent {} @ 0.85
positive {nsJI.,} <> negative {} @ 0.85
benign {s} <> malignant {} @ 0.9
{BbR} benign {.,C} <> {} malignant {} @ 0.92
noncancerous > cancerous @ 0.9
contagious > noncontagious @ 0.85
regular {ns.,} <> irregular {} @ 0.86
complete {ns.,} <> incomplete {} @ 0.86
adequate <> inadequate @ 0.9
appropriate <> inappropriate @ 0.9
successful <> unsuccessful @ 0.92
clear {.,ISW} <> unclear {} @ 0.88
{B} known {.,} > {} unknown {} @ 0.85
{Bb} unknown {.,C} > {} known {} @ 0.95
true {.,I} <> false {} @ 0.92
happy {.,InsT} <> unhappy {} @ 0.92
cheap <> expensive @ 0.92
empty {.,ns} > full {} @ 0.8
alone . > together . @ 0.8
young {nsC.,} <> old {} @ 0.85
{BbnsvzdgR} near {DP} > {} far from {} @ 0.85
far from > near @ 0.85
toward {D} <> away from {} @ 0.85
towards {D} > away from {} @ 0.85
slow {n.,} <> fast {} @ 0.87
""")
