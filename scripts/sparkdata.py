"""A store with a quarter of a year in it, for the guide to Spark: generated, always the same.

Five kinds of cloud resources of four teams, their states as versions, logs and reports beside them, and the runs of
three workflows. One kind drifts for two weeks, and one step of a workflow fails for a while: the analyses find them.
"""

import hashlib
import json
import os
import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from mire.model.artifact import Metadata, Owner
from mire.model.index import Entry, Meta
from mire.model.instant import Instant, instant_of
from mire.model.lifetime import parse_lifetime
from mire.model.names import DataName, RelPath, Uuid, Version
from mire.model.record import Run
from mire.wire.layout import run_path
from mire.wire.meta import encode_meta
from mire.wire.metadata import encode_metadata
from mire.wire.partition import partition_of
from mire.wire.record import encode_run
from mire.wire.shard import encode_shard

START = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
WEEKS = 13
TEAMS = ("network", "payments", "search", "platform")
KINDS = {
    "aws/ec2/vpc": ("cidr", "tenancy", "dns", "flow_logs"),
    "aws/ec2/security-group": ("ingress", "egress", "description", "rules"),
    "aws/rds/instance": ("engine", "size", "storage_gb", "backup_days", "multi_az"),
    "aws/s3/bucket": ("versioning", "encryption", "lifecycle_days"),
    "k8s/deployment": ("image", "replicas", "cpu_m", "memory_mb"),
}
DRIFTING, DRIFT_WEEKS = "aws/ec2/security-group", (6, 7)
WORKFLOWS = {
    "nightly-sweep": ("plan", "apply", "verify"),
    "deploy": ("build", "push", "rollout", "smoke-test"),
    "backup": ("snapshot", "copy", "prune"),
}
BROKEN, BROKEN_WEEKS = ("deploy", "smoke-test"), (3, 4, 5)
LIFETIMES = (("log", "30d", 60_000), ("report", "1y", 25_000), ("plan", "ephemeral", 9_000))


class Remote:
    """A remote that is being made: its files, and then its index."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._shards: dict[str, dict[RelPath, Entry]] = {}

    def add(self, rel: str, data: bytes, at: Instant) -> None:
        """Store a file, and list it."""
        path = os.path.join(self._root, rel)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        entry = Entry(size_bytes=len(data), last_modified=at, local_mtime=at, sha256=hashlib.sha256(data).hexdigest())
        self._shards.setdefault(partition_of(rel) or "", {})[RelPath(rel)] = entry

    def finish(self) -> None:
        """Write the index."""
        os.makedirs(os.path.join(self._root, "_index"), exist_ok=True)
        documents = {name: encode_shard(entries) for name, entries in self._shards.items()}
        documents["_meta"] = encode_meta(Meta(version=2, partitions=tuple(self._shards), commit_seq=1))
        for name, data in documents.items():
            with open(os.path.join(self._root, "_index", f"{name}.json"), "wb") as file:
                file.write(data)


def generate(root: str, *, models: int = 8) -> None:
    """Make the store; `models` is how many there are of each kind."""
    chance = random.Random(7)  # noqa: S311 - the same store every time
    remote = Remote(root)
    for kind, keys in KINDS.items():
        for number in range(models):
            _model(remote, chance, kind, keys, number)
    for workflow, steps in WORKFLOWS.items():
        for night in range(WEEKS * 7):
            _run(remote, chance, workflow, steps, night)
    remote.finish()


def _uuid(*parts: object) -> Uuid:
    return Uuid(str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, parts)))))


def _model(remote: Remote, chance: random.Random, kind: str, keys: tuple[str, ...], number: int) -> None:
    model, team = str(_uuid(kind, number)), TEAMS[(number + len(keys)) % len(TEAMS)]
    directory = f"data/{kind}/{model}"
    state: dict[str, Any] = {key: chance.randrange(100) for key in keys}
    version = 0
    for week in range(WEEKS):
        for _ in range(2):
            version += 1
            at = START + timedelta(weeks=week, days=3 * (version % 2), minutes=number)
            is_drifting = kind == DRIFTING and week in DRIFT_WEEKS
            for key in keys:
                if chance.random() < (0.7 if is_drifting else 0.06):
                    state[key] = chance.randrange(100)
            content = json.dumps(state, separators=(",", ":")).encode()
            _version(remote, directory, "state", version, content, at, team, "infinite")
    for name, lifetime, size in LIFETIMES:
        text = (f"{kind} {model} {name}\n" * (size // 40))[
            : chance.randrange(size // 3, size) * (1 + TEAMS.index(team))
        ]
        _version(remote, directory, name, 1, text.encode(), START + timedelta(weeks=WEEKS), team, lifetime)


def _version(
    remote: Remote, directory: str, name: str, version: int, content: bytes, at: datetime, team: str, lifetime: str
) -> None:
    instant, model = instant_of(at), directory.rpartition("/")[2]
    is_state = name == "state"
    metadata = Metadata(
        id=_uuid(directory, name, version),
        name=DataName(name),
        version=Version(version),
        content_type="application/json" if is_state else "text/plain",
        lifetime=parse_lifetime(lifetime),
        version_policy=50,
        streaming=False,
        tags={"type": "resource" if is_state else "file", "specName": name, "modelName": model, "team": team},
        owner=Owner(owner_type="manual", owner_ref=model),
        created_at=instant,
        size_bytes=len(content),
        checksum=hashlib.sha256(content).hexdigest(),
    )
    remote.add(f"{directory}/{name}/{version}/raw", content, instant)
    remote.add(f"{directory}/{name}/{version}/metadata.yaml", encode_metadata(metadata), instant)
    remote.add(f"{directory}/{name}/latest", str(version).encode(), instant)


def _run(remote: Remote, chance: random.Random, workflow: str, steps: tuple[str, ...], night: int) -> None:
    at = START + timedelta(days=night)
    done: list[dict[str, Any]] = []
    status = "succeeded"
    for number, step in enumerate(steps):
        is_broken = (workflow, step) == BROKEN and night // 7 in BROKEN_WEEKS
        has_failed = chance.random() < (0.6 if is_broken else 0.03)
        begun, ended = at + timedelta(minutes=5 * number), at + timedelta(minutes=5 * number + 4)
        record: dict[str, Any] = {"stepName": step, "status": "failed" if has_failed else "succeeded"}
        record |= {"startedAt": instant_of(begun), "completedAt": instant_of(ended)}
        done.append({**record, "error": f"{step} timed out"} if has_failed else record)
        if has_failed:
            status = "failed"
            break
    run = Run(
        id=_uuid(workflow, "run", night),
        workflow_id=_uuid(workflow),
        workflow_name=workflow,
        status=status,
        started_at=instant_of(at),
        completed_at=instant_of(at + timedelta(minutes=5 * len(done))),
        jobs=({"jobName": "main", "status": status, "steps": done},),
        tags={"team": TEAMS[len(steps) % len(TEAMS)]},
    )
    remote.add(run_path(run.workflow_id, run.id), encode_run(run), instant_of(at))
