"""`mire hold`: keep versions from retention."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import common_options, emit, open_datastore, plain, table

if TYPE_CHECKING:
    from mire.flow.datastore import Datastore
    from mire.flow.hold import HeldName
    from mire.flow.walk import Finding


@click.command("hold", short_help="Keep versions from retention.")
@click.argument("model_type", metavar="TYPE", required=False)
@click.argument("model_id", metavar="ID", required=False)
@click.argument("name", metavar="NAME", required=False)
@click.option("--version", type=int, metavar="N", help="Only this version.")
@click.option("--reason", metavar="TEXT", help="Why it must stay.")
@click.option("--release", is_flag=True, help="End the hold of the name, or of the version given.")
@click.option("--list", "is_list", is_flag=True, help="List what is held.")
@common_options
def command(
    model_type: str | None,
    model_id: str | None,
    name: str | None,
    version: int | None,
    reason: str | None,
    release: bool,
    is_list: bool,
) -> None:
    """Keep NAME, or one version of it, from 'mire retain' and 'mire prune' until it is released.

    'mire rm' still deletes it: a hold is not a lock.
    """
    from mire.errors import InputError, shown

    given = (model_type, model_id, name, version, reason, release or None)
    if is_list:
        if any(value is not None for value in given):
            raise InputError("--list shows every hold: give it alone", kind="usage")
        _list(open_datastore())
        return
    if model_type is None or model_id is None or name is None:
        raise InputError("say what to hold: TYPE ID NAME, or --list to see what is held", kind="usage")
    if release and reason is not None:
        raise InputError(f"--reason {shown(reason)} is for a hold, not for its release: leave out one of the two")
    _change(open_datastore(), (model_type, model_id, name), version, reason, release=release)


def _change(
    ds: "Datastore", what: tuple[str, str, str], version: int | None, reason: str | None, *, release: bool
) -> None:
    from mire.flow.hold import hold, unhold
    from mire.flow.read import model_ref
    from mire.model.names import parse_data_name, parse_version
    from mire.wire.hold import hold_document

    model, name = model_ref(what[0], what[1]), parse_data_name(what[2])
    number = None if version is None else parse_version(version)
    done = unhold(ds, model, name, number) if release else hold(ds, model, name, number, reason)
    part = "" if number is None else f" version {number}"
    emit(
        "hold",
        {
            "modelType": model.model_type,
            "modelId": model.model_id,
            "name": name,
            "released": release,
            "hold": hold_document(done),
        },
        f"{model} {name}{part}: {'released' if release else 'held'}",
    )


def _list(ds: "Datastore") -> None:
    from mire.flow.hold import HeldName, list_holds

    held: list[HeldName] = []
    findings: list[Finding] = []
    for found in list_holds(ds):
        if isinstance(found, HeldName):
            held.append(found)
        else:
            findings.append(found)
    document = {
        "holds": [document for item in held for document in _documents(item)],
        "findings": [
            {
                "modelType": item.model.model_type,
                "modelId": item.model.model_id,
                "name": item.name,
                "message": item.message,
            }
            for item in findings
        ],
    }
    emit("hold.list", document, lambda: _text(held, findings))


def _documents(held: "HeldName") -> list[dict[str, Any]]:
    from mire.wire.hold import hold_document

    about = {"modelType": held.model.model_type, "modelId": held.model.model_id, "name": held.name}
    return [{**hold_document(item), **about} for item in held.holds.items]


def _text(held: "list[HeldName]", findings: "list[Finding]") -> str:
    rows = [
        [found.model, found.name, "all" if item.version is None else item.version, item.at, item.by, item.reason or "-"]
        for found in held
        for item in found.holds.items
    ]
    notes = [plain(f"note: {item.model} {item.name or ''}: {item.message}") for item in findings]
    return "\n".join(
        [table(["MODEL", "NAME", "VERSION", "SINCE", "BY", "REASON"], rows) if rows else "no holds", *notes]
    )
