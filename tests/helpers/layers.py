"""The layers of the house: who may import whom; docs/design.md states it in words."""

# Who stands on whom inside legato_rt. A module may import its own row, the rows named here, and
# what those may import in turn. A sub-package stands under its own name; the longest match counts.
ROWS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("_checkout",): (),
    ("errors",): (),
    ("access", "data", "spaces", "regions"): ("errors",),
    ("context",): ("errors",),
    ("task", "future", "arguments"): ("access", "context", "errors"),
    ("energy", "carbon"): ("errors",),
    ("files", "powerbudget"): ("errors",),
    ("machine", "machine_file", "backend"): ("energy", "errors", "files"),
    ("metering",): ("energy", "errors", "machine"),
    ("settings",): ("errors",),
    ("face",): ("context", "errors"),
    ("residence",): ("arguments", "regions"),
    ("placement",): ("task", "machine", "residence"),
    ("node",): ("data", "placement"),
    ("graph", "order"): ("data", "task", "node"),
    ("outcomes", "ownership", "strict"): ("graph",),
    ("parking",): (),
    ("chunks", "replay"): ("ownership",),
    ("capture",): ("replay", "formats"),
    ("draws", "objective"): ("errors",),
    ("costs",): ("energy", "machine", "task"),
    ("site",): ("costs", "machine", "objective"),
    ("policy.base",): ("order", "costs", "machine", "site"),
    ("policy",): ("order", "costs", "draws", "machine", "policy.base"),
    ("memory",): ("data", "machine"),
    ("scheduler",): ("parking", "graph", "outcomes", "order", "policy.base", "costs", "memory"),
    ("invariants",): ("scheduler",),
    ("executor",): ("scheduler", "draws", "ownership", "strict", "backend", "memory", "trace"),
    ("equipment",): ("executor", "settings"),
    ("lending",): ("executor",),
    ("ledger",): ("executor", "metering", "report", "trace"),
    ("history", "history_store"): ("costs", "files", "arguments"),
    ("live",): ("executor", "site"),
    ("assembly",): (
        "equipment",
        "history_store",
        "invariants",
        "ledger",
        "lending",
        "live",
        "policy",
        "residence",
        "strict",
    ),
    ("formats", "checkpoint", "instrument"): ("graph", "machine"),
    ("shipping",): ("formats",),
    ("simulation",): ("executor", "shipping", "policy", "trace"),
    ("tuning",): ("costs", "task"),
    ("devicebench",): ("backend", "machine", "task"),
    ("trace", "report", "dashboard"): ("energy", "machine"),
}
# These tie the rest together and may import all of it.
TOP = ("", "runtime", "cli", "testing", "check")

DEVICES_MAY_IMPORT = ("backend", "energy", "errors", "machine")
# What a tree may import beyond the public face and itself.
FACE_AND = {
    "kernels": ("legato_rt.access", "legato_rt.task"),
    "apps": ("legato_rt.kernels",),
    "bench": ("legato_rt.kernels",),
}
