"""The words of the simulated project: what its components are called, what is said of them, and how people ask."""

from __future__ import annotations

from dataclasses import dataclass

NOUNS = {
    "billing": {
        "invoice": "bill",
        "ledger": "books",
        "refund": "money back",
        "tariff": "price list",
        "dunning": "reminder",
    },
    "search": {
        "synonym": "thesaurus",
        "query": "lookup",
        "ranking": "ordering",
        "snippet": "excerpt",
        "crawler": "spider",
    },
    "ingest": {
        "feed": "incoming data",
        "upload": "file drop",
        "sensor": "probe",
        "webhook": "callback",
        "mail": "inbox",
    },
    "identity": {
        "login": "sign-in",
        "session": "visit",
        "consent": "permission",
        "password": "secret",
        "invite": "guest",
    },
    "mobile": {
        "push": "notification",
        "offline": "airplane mode",
        "photo": "picture",
        "map": "geography",
        "beacon": "locator",
    },
    "reports": {
        "dashboard": "overview page",
        "forecast": "prediction",
        "cohort": "user group",
        "audit": "inspection",
        "chart": "graph picture",
    },
    "catalogue": {
        "product": "article",
        "stock": "warehouse count",
        "bundle": "package deal",
        "review": "rating",
        "image": "artwork",
    },
    "delivery": {
        "parcel": "shipment",
        "courier": "carrier",
        "route": "itinerary",
        "label": "sticker",
        "pickup": "collection",
    },
}
"""By area: the nouns of names, and what people call them who do not know the name."""

ROLES = {
    "exporter": "dump job", "cache": "fast lookup layer", "queue": "backlog", "scheduler": "timer",
    "gateway": "front door", "worker": "background process", "store": "persistence layer", "validator": "checker",
    "proxy": "relay", "reporter": "summary job",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something that is so or otherwise about a component.

    `says` are sentences with {c} and {v}; `titles` have {c}; `asked` is how sessions ask about it and `held_out` how
    judged queries do, with {c}; `errors` are messages by which its failures show; `word` is what one types.
    """

    name: str
    values: tuple[str, ...]
    titles: tuple[str, ...]
    says: tuple[str, ...]
    word: tuple[str, str]
    asked: tuple[str, ...]
    held_out: tuple[str, ...]
    errors: tuple[str, ...]


ASPECTS = (
    Aspect(
        "storage",
        ("PostgreSQL", "Redis", "SQLite files", "S3 objects", "DynamoDB", "Cassandra", "ClickHouse", "flat CSV files"),
        ("Where the {c} keeps its data", "{c}: storage", "Persistence of the {c}", "Choice of a data store, {c}"),
        ("The {c} keeps its rows in {v}.", "All records of the {c} are stored in {v}.",
         "{v} holds everything that the {c} writes.", "We persist the state of the {c} in {v}."),
        ("storage", "database"),
        ("where does the {c} store its data", "which storage does the {c} use", "{c} data store"),
        ("what database is behind the {c}", "in what are records of the {c} persisted", "backend for rows of the {c}"),
        ("disk quota exceeded while flushing rows", "could not open relation: too many connections"),
    ),
    Aspect(
        "retries",
        ("three attempts with exponential back-off", "a single retry after a minute", "no retries at all",
         "five attempts with jitter", "endless retries until midnight", "a dead letter list after two tries",
         "ten quick attempts and then a page to the engineer on call"),
        ("Retries of the {c}", "{c}: what happens after a failure", "Failed calls in the {c}", "Back-off policy, {c}"),
        ("After a failed call the {c} makes {v}.", "The policy for failures in the {c} is {v}.",
         "When the other side does not answer, the {c} falls back to {v}.", "For the {c} we settled on {v}."),
        ("retries", "attempts"),
        ("how often does the {c} retry", "what does the {c} do when a call fails", "retry policy {c}"),
        ("how many attempts are made by the {c}", "failing requests of the {c}, are they repeated",
         "{c} gives up after"),
        ("giving up: upstream unavailable", "message was delivered twice"),
    ),
    Aspect(
        "timeout",
        ("2 seconds", "30 seconds", "five minutes", "250 milliseconds", "90 seconds", "one hour", "ten seconds"),
        ("Timeouts in the {c}", "{c}: how long to wait", "Deadline of the {c}", "Waiting time, {c}"),
        ("The {c} waits {v} before it gives a request up.", "Requests through the {c} time out after {v}.",
         "The deadline of the {c} is {v}.", "A call in the {c} may take {v}, no longer."),
        ("timeout", "deadline"),
        ("what is the timeout of the {c}", "how long does the {c} wait", "{c} time limit"),
        ("maximum duration of a call in the {c}", "when does the {c} stop waiting", "deadline for {c} requests"),
        ("context deadline exceeded", "socket hang up after waiting"),
    ),
    Aspect(
        "authentication",
        ("signed cookies", "OAuth device codes", "mutual TLS", "API keys in a header", "JSON web tokens of ten minutes",
         "SAML assertions", "one-time links"),
        ("Who may call the {c}", "{c}: authentication", "Access to the {c}", "Credentials for the {c}"),
        ("Callers of the {c} prove who they are by {v}.", "The {c} authenticates with {v}.",
         "Access to the {c} is by {v}.", "We protect the {c} with {v}."),
        ("authentication", "credentials"),
        ("how do I authenticate with the {c}", "what credentials does the {c} want", "access to {c}"),
        ("who is let into the {c} and by what proof", "identity check for the {c}", "logging in at the {c}"),
        ("401 unauthorized: signature mismatch", "certificate verify failed"),
    ),
    Aspect(
        "format",
        ("JSON lines", "Avro", "Protocol Buffers", "MessagePack", "CSV with a header", "Parquet", "XML"),
        ("Format of messages, {c}", "{c}: what is on the wire", "Encoding in the {c}", "What the {c} reads and writes"),
        ("Messages of the {c} are encoded as {v}.", "The {c} speaks {v}.", "On the wire the {c} uses {v}.",
         "Everything that leaves the {c} is {v}."),
        ("format", "encoding"),
        ("which format does the {c} write", "what do messages of the {c} look like", "{c} serialisation"),
        ("how is a payload of the {c} encoded", "data format on the wire in the {c}", "parse output of {c}"),
        ("unexpected end of input at byte 0", "unknown field number in message"),
    ),
    Aspect(
        "release",
        ("blue-green switches", "a canary of five per cent", "rolling restarts", "a nightly image",
         "manual approval by two people", "feature toggles", "weekly trains on Tuesdays"),
        ("How the {c} is released", "{c}: deployment", "Roll-out of the {c}", "Shipping changes of the {c}"),
        ("New versions of the {c} go out by {v}.", "We deploy the {c} with {v}.", "The {c} is rolled out through {v}.",
         "Releases of the {c} are {v}."),
        ("deployment", "roll-out"),
        ("how is the {c} deployed", "how do we release the {c}", "{c} deploy"),
        ("shipping a new version of the {c}", "roll-out procedure {c}", "what happens on publishing the {c}"),
        ("image pull back-off on start", "health check never turned green"),
    ),
    Aspect(
        "limit",
        ("100 requests a minute", "20 requests a second", "one job at a time", "4 megabytes a message",
         "5,000 rows a batch", "no limit but the budget of the day", "three parallel connections"),
        ("Limits of the {c}", "{c}: rate limit", "How much the {c} takes", "Throttling in the {c}"),
        ("The {c} accepts {v}.", "We throttle the {c} at {v}.", "The limit of the {c} is {v}.",
         "Nobody gets more through the {c} than {v}."),
        ("limit", "throttling"),
        ("what is the rate limit of the {c}", "how much can I send to the {c}", "{c} quota"),
        ("throughput allowed by the {c}", "when does the {c} begin to throttle", "maximum load {c}"),
        ("429 too many requests", "payload rejected: larger than allowed"),
    ),
    Aspect(
        "owner",
        ("team Heron", "team Otter", "team Lynx", "team Marmot", "the platform guild", "team Swift", "team Badger"),
        ("Who looks after the {c}", "{c}: ownership", "Contact for the {c}", "Responsibility for the {c}"),
        ("The {c} belongs to {v}.", "{v} looks after the {c}.", "Questions about the {c} go to {v}.",
         "On call for the {c} is {v}."),
        ("owner", "contact"),
        ("who owns the {c}", "which team is responsible for the {c}", "{c} on call"),
        ("whom to ask about the {c}", "people in charge of the {c}", "maintainers of {c}"),
        ("alert went to an empty channel", "no reviewer found for the change"),
    ),
)  # fmt: skip

REASONS = (
    "Operating it had become the largest part of our on-call hours.", "The bill of the last quarter left no choice.",
    "Two customers had lost data, and nobody could say when.", "It is what the rest of the area does already.",
    "Measurements on a copy of production showed no drawback.", "The security review asked for it.",
    "The former maintainers of the library have stopped.", "Our largest customer needs it by contract.",
    "It makes local development possible without a network.", "The median did not move, the slowest per cent did.",
)  # fmt: skip
FILLERS = (
    "The change is described in the runbook, and dashboards show it by region.",
    "Whoever works on this should read the tests of the integration suite first.",
    "Local runs use a container with the same settings as staging.",
    "Costs are booked on the area's account and looked at once a month.",
    "Metrics carry the name of the component as a prefix.",
    "Rolling back is possible for a week; after that the old tables are dropped.",
    "The schema lies beside the code and is checked on every commit.",
    "Staging holds a tenth of the data of production, made anonymous.",
    "Reviewers look for missing indexes and for calls inside of loops.",
    "Support has a page that explains the messages which customers see.",
    "Alarms are silent at night unless more than one region is concerned.",
    "The first version came from a hackathon and was rewritten since.",
    "Backups are tried once a quarter by restoring them into an empty account.",
    "Load tests run on Fridays with the traffic of the week before.",
)
BREAKS = (
    "The {c} no longer uses {o}; that decision is outdated.", "This replaces {o}, which the {c} used until now.",
    "Contrary to what we said before, {o} is not used by the {c} any more.",
)  # fmt: skip
"""How a text says that what was so before holds no longer."""
HISTORY = (
    "why did the {c} leave {o}", "what did the {c} use before it went to {v}", "history: {c} and {o}",
    "reasons against {o} in the {c}",
)  # fmt: skip
