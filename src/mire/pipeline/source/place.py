"""From the options of the data source to a store: which one, and which namespaces of it.

Owns: what a path or a repository comes to.
Must not know: tables, Spark.
Keeps: asking for a store that is not there is an error on the driver, before any task is planned.
"""

import os
from collections.abc import Collection
from urllib.parse import quote

from mire.edge import process
from mire.edge.remote import Remote
from mire.errors import NotFoundError, RemoteError, shown
from mire.flow.datastore import locate
from mire.model.config import Config
from mire.model.names import SOLO, Namespace
from mire.pipeline.spaces import namespaces_in
from mire.pipeline.store import StoreSpec, open_spec, spec_at
from mire.plan.address import parse_target
from mire.plan.source import SourceOptions
from mire.wire.layout import DATA

ORIGIN = "option 'path'"


def is_bare(path: str) -> bool:
    """Whether a path is just a directory, and no address that says how it is used."""
    return path.startswith(("/", ".", "~"))


def address_of(path: str) -> str:
    """A path as an address: a bare directory is one, too."""
    return f"file://{quote(os.path.abspath(os.path.expanduser(path)))}" if is_bare(path) else path


def config_of(options: SourceOptions) -> tuple[Config, str]:
    """The settings that count, and the directory that paths in them start at."""
    if options.repo is not None:
        found = locate(os.path.abspath(os.path.expanduser(options.repo)))
        if not found.is_initialized:
            raise NotFoundError(f"{shown(found.repo_dir)} is not a repository: name one, or a store with 'path'")
        return found.config, found.repo_dir
    here = os.getcwd()
    target = parse_target(
        address_of(options.path or ""), repo_dir=here, environ=process.environ(), what=f"{ORIGIN} of format 'mire'"
    )
    return Config(target=target, origin=ORIGIN), here


def spec_for(options: SourceOptions) -> StoreSpec:
    """The store, and the namespace of it that the settings name."""
    config, repo_dir = config_of(options)
    return spec_at(config, repo_dir=repo_dir)


def specs_of(options: SourceOptions, known: Collection[Namespace] = ()) -> tuple[StoreSpec, ...]:
    """The namespaces to read, as tasks can take them along; `known` ones are not asked for again."""
    spec = spec_for(options).to_read()
    if options.is_every_namespace:
        spaces = namespaces_in(spec, known)
        if not spaces:
            raise NotFoundError(
                f"the store {shown(options.path or options.repo)} has no namespace: leave the option 'namespaces' out",
                kind="no_namespace",
            )
        return tuple(spec.within(each) for each in spaces)
    return tuple(spec.within(each) for each in options.namespaces) or (spec,)


def open_checked(spec: StoreSpec) -> Remote:
    """The store, which must be there: a directory that is missing would pass for an empty one."""
    if spec.is_directory:
        root = os.path.join(str(spec.settings), spec.namespace)
        if not os.path.isdir(root):
            what = f"the namespace {shown(spec.namespace)} of " if spec.namespace != SOLO else ""
            raise RemoteError(
                f"{what}the store {shown(spec.settings)} is not there: correct the option, or mount it",
                kind="unreachable",
            )
    return open_spec(spec)


def has_plain_data(spec: StoreSpec) -> bool:
    """Whether a store is a directory that is used in place, with data in it."""
    return spec.is_directory and os.path.isdir(os.path.join(str(spec.settings), spec.namespace, DATA))
