"""The table of error codes: one entry per way in which the product can fail (feature T26).

Categories follow the specification (embedding, file, database, parameter, search, provider, checkpoint, session,
memory, validation) plus `configuration` and `internal`. Codes never change their meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["low", "medium", "high", "critical"]
Kind = Literal[
    "not found", "request", "document", "configuration", "model", "store", "store busy", "store closed", "search",
    "internal", "other",
]  # fmt: skip
"""What a program would do about a failure: each kind but the last is a class of its own (`errors.kinds`)."""

KIND_OF_CATEGORY: dict[str, Kind] = {
    "embedding": "model",
    "file": "document",
    "database": "store",
    "parameter": "request",
    "search": "request",
    "checkpoint": "store",
    "memory": "not found",
    "validation": "document",
    "configuration": "configuration",
    "internal": "internal",
}


@dataclass(frozen=True, slots=True)
class Code:
    """What a code means. `callers_fault` decides the exit status: 2 when true, 1 when false.

    `own_kind` is that of a code which is of another kind than its category.
    """

    name: str
    category: str
    severity: Severity
    hint: str
    actions: tuple[str, ...]
    callers_fault: bool = False
    own_kind: Kind | None = None

    @property
    def kind(self) -> Kind:
        """Decides the class of errors with this code."""
        return self.own_kind or KIND_OF_CATEGORY[self.category]


CODES: dict[str, Code] = {
    "E001": Code(
        "embedding failed",
        "embedding",
        "high",
        "The text could not be turned into a vector.",
        ("run `speckit-memory doctor` to check the embedding model",),
    ),
    "E002": Code(
        "embedding dimension mismatch",
        "embedding",
        "high",
        "The store holds vectors of another model.",
        ("run `speckit-memory index PATH` to embed again",),
    ),
    "E003": Code(
        "embedding model changed",
        "embedding",
        "medium",
        "Vectors of two models never mix. Words find everything until all memories are embedded again.",
        ("run `speckit-memory index PATH` to embed with the configured model",),
    ),
    "E010": Code(
        "file not found",
        "file",
        "medium",
        "The path does not exist or is not readable.",
        ("check the path", "give a path relative to the working directory or an absolute one"),
        True,
        "not found",
    ),
    "E011": Code(
        "file access denied",
        "file",
        "medium",
        "The file exists but may not be read.",
        ("check the permissions of the file",),
        True,
    ),
    "E012": Code(
        "file encoding not understood",
        "file",
        "medium",
        "Accepted: UTF-8, and UTF-16 with a byte order mark.",
        ("save the file as UTF-8",),
        True,
    ),
    "E013": Code(
        "file too large",
        "file",
        "medium",
        "The file is over the size limit.",
        ("split the file into smaller documents",),
        True,
    ),
    "E014": Code(
        "invalid path", "file", "medium", "The path cannot be used for this.", ("give another path",), True, "request"
    ),
    "E020": Code(
        "database cannot be opened",
        "database",
        "critical",
        "The store could not be opened.",
        ("check that the folder exists and is writable", "run `speckit-memory doctor`"),
    ),
    "E021": Code(
        "database query failed", "database", "high", "The store did not answer.", ("run `speckit-memory doctor`",)
    ),
    "E022": Code(
        "database is busy",
        "database",
        "medium",
        "Another process kept the store locked for too long.",
        ("try again", "stop the other process"),
        own_kind="store busy",
    ),
    "E023": Code(
        "database migration failed",
        "database",
        "critical",
        "The schema could not be brought up to date.",
        ("restore a backup of the file", "run `speckit-memory doctor`"),
    ),
    "E024": Code(
        "database is damaged or not ours",
        "database",
        "critical",
        "The file is not a healthy store.",
        (
            "run `speckit-memory doctor`: it says what is damaged",
            "stop the servers, move the file away with its -wal and -shm, then restore a backup or index again",
        ),
    ),
    "E025": Code(
        "database is newer than this version",
        "database",
        "critical",
        "The store was written by a later version of speckit-memory.",
        ("upgrade speckit-memory",),
    ),
    "E026": Code(
        "database was replaced",
        "database",
        "medium",
        "Another file, or another state of it, is at the store's path. What was asked for may not be in it.",
        ("try again", "stop the servers before a store is moved, restored or deleted"),
    ),
    "E027": Code(
        "memory is closed",
        "database",
        "low",
        "What was opened is used after its end.",
        ("use it inside its `with` block", "open the store again"),
        True,
        "store closed",
    ),
    "E028": Code(
        "segment is not used",
        "database",
        "low",
        "Answers are the same without the segment and come later.",
        ("run `speckit-memory doctor --fix`", "or wait: a running server and `index` write it by themselves"),
    ),
    "E029": Code(
        "segment cannot be written",
        "database",
        "medium",
        "Answers are the same without the segment and come later.",
        ("make the folder beside the store writable, or free disk space", "run `speckit-memory doctor --fix`"),
    ),
    "E030": Code(
        "invalid parameter",
        "parameter",
        "low",
        "A value has the wrong type or form.",
        ("correct the value and call again",),
        True,
    ),
    "E031": Code("missing parameter", "parameter", "low", "A required value is missing.", ("add the value",), True),
    "E032": Code(
        "value out of range",
        "parameter",
        "low",
        "A value is outside its range.",
        ("correct the value and call again",),
        True,
    ),
    "E033": Code(
        "unknown parameter",
        "parameter",
        "low",
        "This name is not accepted here.",
        ("remove it or use the suggested name",),
        True,
    ),
    "E034": Code(
        "address not available",
        "parameter",
        "medium",
        "The server cannot listen at this address.",
        ("choose another --port", "stop the program that uses it"),
        True,
    ),
    "E040": Code(
        "search failed",
        "search",
        "high",
        "The pipeline could not answer.",
        ("run `speckit-memory doctor`", "try `--pipeline bm25`"),
        own_kind="search",
    ),
    "E042": Code(
        "query too long", "search", "low", "A query may have at most 10,000 characters.", ("shorten the query",), True
    ),
    "E043": Code(
        "query empty",
        "search",
        "low",
        "A query needs at least one letter or digit.",
        ("say what you are looking for",),
        True,
    ),
    "E060": Code(
        "checkpoint not found",
        "checkpoint",
        "low",
        "No checkpoint of this store has this name.",
        ("list them with `speckit-memory checkpoint list`",),
        True,
        "not found",
    ),
    "E061": Code(
        "checkpoint not restored",
        "checkpoint",
        "high",
        "The store is as it was before.",
        ("choose another checkpoint: `speckit-memory checkpoint list`", "run `speckit-memory doctor`"),
    ),
    "E062": Code(
        "checkpoint not made",
        "checkpoint",
        "high",
        "Nothing was kept, and the store is as it was.",
        ("make the folder beside the store writable, or free disk space", "run `speckit-memory doctor`"),
    ),
    "E063": Code(
        "checkpoint exists",
        "checkpoint",
        "low",
        "A checkpoint is never written over.",
        ("choose another name", "delete that one first: `speckit-memory checkpoint delete NAME`"),
        True,
        "request",
    ),
    "E080": Code(
        "memory not found",
        "memory",
        "low",
        "No memory has this id or key.",
        ("search for its words, every result shows its key", "over MCP, list memories with `memory_list`"),
        True,
    ),
    "E081": Code(
        "memory could not be saved",
        "memory",
        "high",
        "This change was not written; what was committed before it is kept.",
        ("try again",),
        own_kind="store",
    ),
    "E082": Code(
        "promotion refused",
        "memory",
        "low",
        "A memory becomes critical once readers trust it: confidence of 0.9 or more after 5 validations or more.",
        ("judge it with `memory_validate` each time it was read",),
        True,
        "request",
    ),
    "E083": Code(
        "link cannot be changed so",
        "memory",
        "low",
        "A link that a document declares changes with that document; a change is undone while nothing came after it.",
        ("`speckit-memory links history` shows what became of a link",),
        True,
        "request",
    ),
    "E084": Code(
        "task is complete",
        "memory",
        "low",
        "What was known before a task is not told once it is over.",
        ("record the next task under a taskId of its own",),
        True,
        "request",
    ),
    "E090": Code(
        "document not valid",
        "validation",
        "medium",
        "The document breaks a rule of the memory format.",
        ("correct the document and save again",),
        True,
    ),
    "E091": Code(
        "anchor not valid",
        "validation",
        "low",
        "An ANCHOR tag is malformed or not closed.",
        ("close the section with an /ANCHOR:id comment",),
        True,
    ),
    "E092": Code(
        "duplicate document",
        "validation",
        "low",
        "Another memory holds the same content under another key.",
        ("save under the key of that memory", "save with force to keep both"),
        True,
    ),
    "E093": Code(
        "memory analysed by an older version",
        "validation",
        "medium",
        "Its words were cut by other rules than today's and may not be found.",
        ("index all folders of the workspace again, in one run",),
        True,
    ),
    "E094": Code(
        "document over a limit",
        "validation",
        "medium",
        "A part of the document was cut, so that one document cannot take the time and memory of all others.",
        ("split the document into smaller ones",),
        True,
    ),
    "E095": Code(
        "date out of range",
        "validation",
        "low",
        "Times are known from 1678 to 2261; any other is left unknown.",
        ("correct the date in the document", "correct the time of the file with `touch`"),
        True,
    ),
    "E096": Code(
        "helping process ended",
        "internal",
        "low",
        "Nothing is lost: what it had been given was read by the process that writes.",
        ("look whether memory is short or processes are limited",),
    ),
    "E097": Code(
        "secret left out",
        "validation",
        "medium",
        "The file still holds it; in what is stored, its kind stands in its place.",
        (
            "take it out of the file, and make it void where it was valid",
            "write `speckit:allow secret` into that line if it is none",
        ),
        True,
    ),
    "E098": Code(
        "recalled text left out",
        "validation",
        "low",
        "What a memory already says would otherwise come back as a second memory, and then as a third.",
        (
            "say in your own words what is new, and link the memory that it comes from",
            "write `speckit:allow recalled` into a document that explains what answers look like",
        ),
        True,
    ),
    "E100": Code(
        "document changed meanwhile",
        "memory",
        "low",
        "The file is not what was indexed or read, and what somebody wrote is not written over.",
        ("index the file, or save it with `memory_save`, then try again",),
        True,
        "request",
    ),
    "E101": Code(
        "document cannot be edited",
        "memory",
        "medium",
        "A memory is changed by editing its file, and this one cannot be written safely. Nothing was changed.",
        ("edit the file by hand and index it",),
        own_kind="request",
    ),
    "E104": Code(
        "section not found",
        "memory",
        "low",
        "A section is named by its ANCHOR id or by its heading.",
        ("show the whole memory, which names its sections",),
        True,
        "not found",
    ),
    "E110": Code(
        "configuration file not readable",
        "configuration",
        "high",
        "The configuration could not be read.",
        ("check the path", "give the name of a preset"),
        True,
    ),
    "E111": Code(
        "not valid YAML",
        "configuration",
        "high",
        "The file is not well-formed YAML 1.2.",
        ("correct the syntax at the position shown",),
        True,
    ),
    "E112": Code(
        "duplicate key", "configuration", "high", "A key may stand once in a mapping.", ("remove one of the two",), True
    ),
    "E113": Code(
        "ambiguous word",
        "configuration",
        "medium",
        "yes, no, on and off mean different things to different YAML readers.",
        ("write true or false, or put the word in quotes",),
        True,
    ),
    "E114": Code(
        "wrong shape",
        "configuration",
        "high",
        "The value has another form than expected here.",
        ("see `speckit-memory pipeline schema`",),
        True,
    ),
    "E115": Code(
        "unknown key",
        "configuration",
        "high",
        "This key is not accepted here.",
        ("remove it or use the suggested name",),
        True,
    ),
    "E116": Code(
        "unknown step",
        "configuration",
        "high",
        "No component has this name.",
        ("use the suggested name", "list all with `speckit-memory pipeline schema`"),
        True,
    ),
    "E117": Code(
        "step in the wrong place",
        "configuration",
        "high",
        "The component belongs to another part of the file.",
        ("move the step",),
        True,
    ),
    "E118": Code(
        "invalid step parameter",
        "configuration",
        "high",
        "The parameter is not accepted by the component.",
        ("correct the value", "see `speckit-memory pipeline schema`"),
        True,
    ),
    "E119": Code(
        "composition rule broken",
        "configuration",
        "high",
        "The steps do not fit together.",
        ("change the steps as the message says",),
        True,
    ),
    "E120": Code(
        "unknown flag",
        "configuration",
        "high",
        "The flag is not declared in flags.yaml.",
        ("declare it in flags.yaml or use the suggested name",),
        True,
    ),
    "E121": Code(
        "unknown pipeline",
        "configuration",
        "high",
        "No preset has this name and no file this path.",
        ("give a path to a YAML file or the name of a preset",),
        True,
    ),
    "E123": Code(
        "dataset not valid",
        "configuration",
        "high",
        "The dataset is not in the BEIR layout.",
        ("correct the file at the position shown",),
        True,
    ),
    "E124": Code(
        "flag rule broken",
        "configuration",
        "medium",
        "Feature flags are few, dated and owned: at most 6 active at once, 90 days of life.",
        ("make the flag permanent or take it out", "correct its entry in flags.yaml"),
    ),
    "E125": Code(
        "no queries could be made",
        "configuration",
        "medium",
        "The documents hold nothing that a query of this kind could be judged by.",
        ("choose another kind", "give a dataset with more or longer documents"),
    ),
    "E126": Code(
        "judge failed",
        "configuration",
        "medium",
        'A judge gets one pair as JSON on its standard input and says {"grade": 0} to {"grade": 3} on its output.',
        ("run the program by hand with one pair", "give it more time with --timeout"),
    ),
    "E127": Code(
        "flag not changed",
        "configuration",
        "low",
        "A flag goes one state at a time: off, dark_run, shadow, enabled, permanent (docs/flags.md).",
        ("see `speckit-memory flags list` for its state and its criterion",),
        True,
    ),
    "E130": Code(
        "stage 4 changed the ranking",
        "internal",
        "critical",
        "An annotator tried to change scores, order or membership.",
        ("remove the step named here",),
    ),
    "E131": Code(
        "step broke its contract",
        "internal",
        "high",
        "A component returned what it is not entitled to, changed what it was shown, or failed while it was built.",
        ("remove the step named here", "report it to the author of the component"),
    ),
    "E132": Code(
        "isolated extension failed",
        "internal",
        "high",
        "A component that runs in a process of its own gave no answer: it failed, took too long, or its process ended.",
        ("remove the step named here", "report it to the author of the extension", "see docs/extending.md"),
    ),
    "E133": Code(
        "component refused",
        "internal",
        "high",
        "A class was registered as a component, and it is none of its role. Its distribution cannot be used.",
        ("correct the method or attribute named here", "uninstall the extension", "see docs/extending.md"),
    ),
    "E199": Code(
        "internal error",
        "internal",
        "critical",
        "This is a defect of speckit-memory.",
        ("report it with the log written to standard error",),
    ),
    "E200": Code("usage", "parameter", "low", "The command line was not understood.", ("see --help",), True),
    "E201": Code(
        "output not written",
        "file",
        "medium",
        "What was asked for may be done all the same; only its report is incomplete.",
        ("make room on the disk", "send the output somewhere else"),
        own_kind="other",
    ),
}
