"""The words of other programs for names and values that are accepted here, so that an error can suggest ours.

They are not accepted themselves: a word with several meanings elsewhere is for its writer to resolve.
"""

from __future__ import annotations

from collections.abc import Collection

_GROUPS = """
content text body markdown note data message value
query q question search searchquery searchterm keywords keyword input prompt text message pattern
prompt usermessage
supersedes replaces replace overrides obsoletes succeeds supersede
causedby caused causes because leadsto
derivedfrom basedon from source origin
supports confirms backs evidencefor agreeswith
contradicts conflicts conflictswith disagreeswith opposes
enabled enables allows unblocks requiredby
critical highest urgent blocker p0 veryhigh max
important high major significant p1
normal medium default regular standard moderate low minor p2 p3
temporary transient ephemeral scratch draft
deprecated obsolete outdated stale superseded retired
constitutional permanent always rule core
tier importancetier importance priority level severity
importanceweight importance weight priority
contexttype type kind category
decision adr choice
research finding investigation
implementation code howto
general other misc
limit topk k n top max maxresults count size numresults pagesize maxitems
offset skip start from
title name heading subject headline
filepath file path filename location
specfolder folder dir directory path scope namespace project prefix subfolder
key id memoryid memory memorykey name file path filepath document uri ref
sessionid session conversation conversationid threadid thread
triggerphrases triggers trigger phrases keywords tags aliases
section anchor heading anchors
anchors sections section
wasuseful useful helpful washelpful rating feedback vote
relation relationship relationtype type kind edgetype linktype predicate
sourceid source from fromid src sourcekey
targetid target to toid dst destination targetkey
strength weight confidence
evidence reason why rationale description
tokenbudget maxtokens tokens budget
includecontent full fulltext includetext withcontent
fromline line startline offset
dryrun preview simulate checkonly
append add
replace overwrite set
edit operation action writemode
deep thorough full
quick fast shallow
incoming in backward upstream parents predecessors
outgoing out forward downstream children successors
both all any
maxdepth depth hops maxhops
sortby sort order orderby
createdat created oldest
updatedat updated modified recent latest newest
olderthandays olderthan days age maxage
deadlinems timeout timeoutms maxms
minstate state
addfeature feature implement build
fixbug bug debug bugfix fix
refactor cleanup restructure
securityaudit security audit
findspec spec specification
finddecision decision
understand explain learn
undo restore recover
edgeid id edge linkid
taskid task
explain trace debug verbose
concepts terms queries topics
search find query recall lookup grep
show get read cat view open print
save add remember store write create new put
delete remove rm forget del
undelete restore recover
list ls all
index scan reindex ingest sync refresh
update edit change set modify rename
validate rate judge feedback
doctor check health status diagnose verify
serve start run server mcp
init setup install configure
maintain gc vacuum optimise optimize clean
stats statistics info summary
export dump backup
import load
remove delete rm
change move reorder edit update modify override
verbose v details
json format output
"""
_MEANINGS = [line.split() for line in _GROUPS.strip().splitlines()]
"""Words for one thing, including our names; the best matches come first."""


def plain(name: str) -> str:
    """A name without case, underscores and hyphens."""
    return name.lower().replace("_", "").replace("-", "")


def accepted_synonym(name: str, accepted: Collection[str]) -> str:
    """The accepted name with the meaning of another one, or with another spelling of it; "" if there is none."""
    by_plain = {plain(known): known for known in sorted(accepted, reverse=True)}
    word = plain(name)
    if word in by_plain:
        return by_plain[word]
    meant = [known for group in _MEANINGS if word in group for known in group]
    return next((by_plain[known] for known in meant if known in by_plain), "")
