"""Phrases that may take one another's place and leave the meaning as it is; see `patterns`."""

from __future__ import annotations

from llm_labeler._providers.wordnet.patterns import Table

TABLE = Table("""
because of <> due to @ 0.92
in order to > to @ 0.93
^ to {v} > in order to {} @ 0.92
so as to > to @ 0.92
such as {DnsJge#} > like {} @ 0.9
for example , <> for instance , @ 0.95
in addition , <> additionally , @ 0.95
^ moreover , > in addition , @ 0.95
^ furthermore , > in addition , @ 0.95
^ however , > nevertheless , @ 0.88
^ nevertheless , > however , @ 0.92
^ therefore , <> consequently , @ 0.93
^ as a result , <> consequently , @ 0.93
^ thus , > therefore , @ 0.93
^ although <> even though @ 0.94
^ though {PD} > although {} @ 0.93
^ because > since @ 0.85
, although > , even though @ 0.92
, but > , yet @ 0.85
whereas > while @ 0.92
, while {D} > , whereas {} @ 0.85
also called <> also known as @ 0.95
also referred to as > also called @ 0.94
also known as > also called @ 0.94
{B} called {Dns} > {} known as {} @ 0.93
{B} known as {Dns} > {} called {} @ 0.93
a number of > several @ 0.92
a lot of {s} > many {} @ 0.93
a lot of {n} > much {} @ 0.8
lots of {s} > many {} @ 0.93
a variety of {s} > various {} @ 0.92
a wide variety of {s} > many kinds of {} @ 0.92
a wide range of {s} > many different {} @ 0.9
a range of {s} > various {} @ 0.88
many different {s} > a variety of {} @ 0.88
several {s} > a number of {} @ 0.9
most of the time > usually @ 0.9
the majority of {s} > most {} @ 0.93
the majority of the > most of the @ 0.93
^ most {s} > the majority of {} @ 0.91
^ most {Jen} {s} > the majority of {} {} @ 0.9
as well as {DnsJ} > and also {} @ 0.85
at least {#} > no fewer than {} @ 0.85
more than {#} {s} <> over {} {} @ 0.93
more than {#} percent <> over {} percent @ 0.93
less than {#} > under {} @ 0.9
fewer than {#} > under {} @ 0.9
approximately {#} {snC} > about {} {} @ 0.95
about {#} {sn} > approximately {} {} @ 0.94
about half > around half @ 0.94
around {#} {s} > about {} {} @ 0.93
roughly {#} > about {} @ 0.94
most often > most frequently @ 0.94
most commonly > most frequently @ 0.93
usually <> typically @ 0.94
generally > usually @ 0.9
{BMHnsP,} normally {vzde} > {} usually {} @ 0.9
often {veJzdn.} > frequently {} @ 0.94
often . > frequently . @ 0.94
frequently > often @ 0.94
sometimes <> occasionally @ 0.93
rarely {veJzdn} <> seldom {} @ 0.93
very {JR} > extremely {} @ 0.87
extremely > very @ 0.93
almost {DRJ#} > nearly {} @ 0.92
nearly {DRJ#} > almost {} @ 0.92
quickly <> rapidly @ 0.94
especially {ISJg} > particularly {} @ 0.93
particularly {ISJg} > especially {} @ 0.93
primarily <> mainly @ 0.94
probably > likely @ 0.85
perhaps > maybe @ 0.88
completely > fully @ 0.87
entirely > completely @ 0.92
at present > currently @ 0.93
immediately {.,I} > right away {} @ 0.9
right away > immediately @ 0.92
as soon as possible > at the earliest opportunity @ 0.85
at this time > currently @ 0.85
over time > as time goes on @ 0.88
all over the world > worldwide @ 0.93
around the world > worldwide @ 0.92
worldwide > around the world @ 0.9
throughout the world > worldwide @ 0.92
in the united states > in the US @ 0.93
each year <> every year @ 0.95
per year > a year @ 0.9
every day <> each day @ 0.95
each day > every day @ 0.95
in most cases > in the majority of cases @ 0.94
in many cases > often @ 0.85
in some cases > sometimes @ 0.88
in rare cases > rarely @ 0.85
^ rarely , > in rare cases , @ 0.94
^ sometimes , > in some cases , @ 0.9
^ often , > in many cases , @ 0.9
^ usually , > in most cases , @ 0.93
^ in general , > generally , @ 0.93
^ generally , > in general , @ 0.92
in fact , > indeed , @ 0.85
prior to > before @ 0.94
{n} before {D} > {} prior to {} @ 0.85
whether or not > whether @ 0.92
is able to {v} > can {} @ 0.92
are able to {v} > can {} @ 0.92
is not able to {v} > cannot {} @ 0.93
are not able to {v} > cannot {} @ 0.93
not able to > unable to @ 0.94
{B} unable to > {} not able to @ 0.94
has to {v} > must {} @ 0.9
{sP} need to {v} > {} have to {} @ 0.88
needs to {v} > has to {} @ 0.9
may {vb} > might {} @ 0.86
might {vb} > may {} @ 0.88
should {v} > ought to {} @ 0.88
lead* to {DJnsg} <> result* in {} @ 0.92
result* from {DJns} > arise* from {} @ 0.88
{B} associated with > {} linked to @ 0.92
{B} linked to > {} associated with @ 0.92
consist* of <> comprise* @ 0.85
occur* in {DJns} > happen* in {} @ 0.86
take* place > occur* @ 0.94
{B} similar to > {} much like @ 0.85
most cases of > the majority of cases of @ 0.93
^ people with {DJns} > those who have {} @ 0.9
{Ig} people with {DJns} > {} those who have {} @ 0.88
children with {DJns} > children who have {} @ 0.92
individuals with {DJns} > people who have {} @ 0.92
patients with {DJns} > patients who have {} @ 0.92
people who have {DJn} {n.} > people with {} {} @ 0.9
patients who have {DJn} {n.} > patients with {} {} @ 0.9
affected individuals > affected people @ 0.95
affected individual > person who is affected @ 0.88
affected people > affected individuals @ 0.94
individuals > people @ 0.92
{DJe} people {MvBIW} > {} individuals {} @ 0.88
{DJsIv} doctor+ > {} physician+ @ 0.94
^ doctors > physicians @ 0.94
physician+ > doctor+ @ 0.94
your doctor <> your physician @ 0.95
medicines <> medications @ 0.93
medicine {MB} > medication {} @ 0.9
illness <> sickness @ 0.8
talk* to your > speak* to your @ 0.94
talk* with your > speak* with your @ 0.94
high blood pressure > hypertension @ 0.93
{IvzdBbC,} hypertension {,.IC} > {} high blood pressure {} @ 0.92
white blood cell+ <> leukocyte+ @ 0.93
radiation therapy <> radiotherapy @ 0.94
kidney failure <> renal failure @ 0.94
blood sugar <> blood glucose @ 0.93
physical therapy <> physiotherapy @ 0.93
heart attack+ > myocardial infarction+ @ 0.9
birth defect+ > congenital anomaly+ @ 0.9
last name+ <> surname+ @ 0.95
period of time > time period @ 0.94
find* out {WISR} > learn* {} @ 0.86
go* away <> disappear* @ 0.9
get* worse > worsen* @ 0.94
worsen* > get* worse @ 0.92
get* better > improve* @ 0.93
look* for {DJns} > search* for {} @ 0.9
search* for {DJns} > look* for {} @ 0.93
carry* out {D} <> perform* {} @ 0.9
perform* {D} > carry* out {} @ 0.85
make* sure that > ensure* that @ 0.94
ensure* that > make* sure that @ 0.94
be made up of > consist of @ 0.92
is made up of > consists of @ 0.93
are made up of > consist of @ 0.93
begin* {TIinR.} > start* {} @ 0.93
start* {TI.} > begin* {} @ 0.9
require* {DJns} > need* {} @ 0.88
need* {D} > require* {} @ 0.88
receive* {DJns} > get* {} @ 0.86
obtain* {DJns} > get* {} @ 0.9
show* that <> demonstrate* that @ 0.93
{ns} suggest* that > {} indicate* that @ 0.88
indicate* that > suggest* that @ 0.88
think* that <> believe* that @ 0.92
purchase* {DJns} > buy* {} @ 0.95
buy* {DJns} > purchase* {} @ 0.93
assist* {DP} > help* {} @ 0.92
attempt* to > try* to @ 0.93
try* to {v} > attempt* to {} @ 0.92
choose* to > decide* to @ 0.85
happen* {IS} > occur* {} @ 0.88
reduce* {Dn} > decrease* {} @ 0.88
decrease* {Dn} > reduce* {} @ 0.92
increase* the risk > raise* the risk @ 0.94
{D} chance of {gDn} > {} likelihood of {} @ 0.92
{D} chances of {gDn} > {} likelihood of {} @ 0.9
kind+ of {ns} > type+ of {} @ 0.94
type+ of {ns} > kind+ of {} @ 0.93
types of treatment > treatment types @ 0.9
throw* up > vomit* @ 0.93
{J} throughout the {n} > {} all through the {} @ 0.8
do not {vbH} > don't {} @ 0.95
does not {vbH} > doesn't {} @ 0.95
did not {vbH} > didn't {} @ 0.95
is not {DJIeR} > isn't {} @ 0.95
are not {DJIeR} > aren't {} @ 0.95
cannot {vb} > can't {} @ 0.95
can not > cannot @ 0.95
will not > won't @ 0.94
should not > shouldn't @ 0.94
has not {be} > hasn't {} @ 0.94
have not {be} > haven't {} @ 0.94
{nsPE} don't > {} do not @ 0.95
^ don't {vb} > do not {} @ 0.95
{nsPE} doesn't > {} does not @ 0.95
{nsPE} didn't > {} did not @ 0.95
{nsPE} isn't > {} is not @ 0.95
{nsPE} aren't > {} are not @ 0.95
{nsPE} wasn't > {} was not @ 0.95
{nsPE} can't > {} cannot @ 0.95
{nsPE} won't > {} will not @ 0.95
{nsPE} couldn't > {} could not @ 0.95
{nsPE} wouldn't > {} would not @ 0.95
{nsPE} shouldn't > {} should not @ 0.95
{nsPE} hasn't > {} has not @ 0.95
{nsPE} haven't > {} have not @ 0.95
it is {DJRN} > it's {} @ 0.93
it's {DJRN} > it is {} @ 0.93
you are {JRNge} > you're {} @ 0.94
you're > you are @ 0.95
they are {JRNgeD} > they're {} @ 0.94
they're > they are @ 0.95
we're > we are @ 0.95
i'm > I am @ 0.95
i've > I have @ 0.95
i'd like > I would like @ 0.95
you've > you have @ 0.95
they've > they have @ 0.95
we've > we have @ 0.95
you'll > you will @ 0.95
there's {DnJ} > there is {} @ 0.93
no {n} is available > there is no {} available @ 0.92
the goal of > the aim of @ 0.95
the aim of > the goal of @ 0.95
the purpose of > the aim of @ 0.93
{D} amount of {n} > {} quantity of {} @ 0.88
next to {D} <> beside {} @ 0.93
each other <> one another @ 0.95
somebody <> someone @ 0.95
anybody <> anyone @ 0.95
nobody <> no one @ 0.95
everybody <> everyone @ 0.95
sofa+ <> couch+ @ 0.95
photograph+ <> photo+ @ 0.95
bike+ <> bicycle+ @ 0.95
airplane+ > plane+ @ 0.95
automobile+ > car+ @ 0.95
kid+ > child+ @ 0.95
children {BMHvdgI} > kids {} @ 0.9
television+ > TV @ 0.88
phone number+ <> telephone number+ @ 0.95
a couple of {s} > two {} @ 0.85
outdoors > outside @ 0.9
garbage <> trash @ 0.93
street+ {.} > road+ {} @ 0.85
jump* {I} > leap* {} @ 0.92
leap* {I} > jump* {} @ 0.93
speak* to {DPn} <> talk* to {} @ 0.92
speak* with {DPn} <> talk* with {} @ 0.92
speak* about {DPns} <> talk* about {} @ 0.92
said that <> stated that @ 0.9
repair* {D} <> fix* {} @ 0.92
display* {D} <> show* {} @ 0.92
delete* {D} > remove* {} @ 0.9
modify* {D} <> change* {} @ 0.9
complete* {D} > finish* {} @ 0.88
finish* {D} > complete* {} @ 0.9
close to {D} <> near {} @ 0.9
on top of {D} > on {} @ 0.9
is located in <> is situated in @ 0.94
are located in <> are situated in @ 0.94
ask* your doctor > consult* your doctor @ 0.92
call your doctor > contact your doctor @ 0.93
the most common > the most frequent @ 0.92
most common {ns} > most frequent {} @ 0.9
more common in > more frequent in @ 0.93
more common among > more frequent among @ 0.93
in children > among children @ 0.88
during pregnancy > while pregnant @ 0.85
health care provider+ > healthcare provider+ @ 0.9
for more information > to learn more @ 0.9
for further information > for more information @ 0.94
for more information about > to learn more about @ 0.93
is unknown > is not known @ 0.94
{B} not known > {} unknown @ 0.94
not clear > unclear @ 0.94
{Bb} unclear > {} not clear @ 0.94
{B} not common > {} uncommon @ 0.93
uncommon > not common @ 0.88
{BR} rare {.,CI} > {} uncommon {} @ 0.9
very rare > extremely rare @ 0.94
{B} due to > {} caused by @ 0.92
affect* both {ns} and {ns} > affect* {} as well as {} @ 0.92
""")
