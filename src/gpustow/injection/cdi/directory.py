"""The directory of CDI files: our files in it are brought to what is wanted, and to what may still be asked for.

Ours are the files of our vendor's kinds, one a class, named as in k8s-device-plugin v0.20.0, whose files are taken
over; no other file is looked at. What has the name of one of ours and is no specification is replaced where one is
wanted, because a runtime can only complain of it. A file whose content is right is left alone.

The old file is read and the new one written under a lock: while one plugin is replaced by the next, each keeps the
names of the other.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpustow.errors import CdiDirectoryError, CdiSpecError
from gpustow.injection.cdi.atomicfiles import AtomicFiles, Found, Surroundings, opened
from gpustow.injection.cdi.names import CLASSES, VENDOR, kind
from gpustow.injection.cdi.oldnames import with_old_names
from gpustow.injection.cdi.specification import CdiSpec, parse_spec


@dataclass(frozen=True, slots=True)
class Publication:
    """What was done: names of files, and sentences for the log.

    `old_names` are the names (`class=name`) that are there for old answers alone.
    """

    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    old_names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def file_name(class_: str) -> str:
    """The name of our file of a class, as in v0.20.0."""
    return f"{VENDOR}-{class_}.json"


class CdiDirectory:
    """The directory at `path`."""

    def __init__(self, path: Path, surroundings: Surroundings | None = None) -> None:
        self.path = path
        self._surroundings = surroundings or Surroundings()

    def publish(
        self, specs: Sequence[CdiSpec], held: Collection[str] | None, removable: Collection[str] | None = None
    ) -> Publication:
        """Makes our files hold `specs`, and of their old content what `held` may still ask for (see `still_named`).

        Where `removable` is given, no other names (`class=name`) are removed: they are another process's.

        Raises:
            CdiDirectoryError: something cannot be written; each file is then as it was or as it should be.
            CdiSpecError: a specification breaks the rules of CDI; nothing is written.
        """
        for spec in specs:
            spec.check()
        wanted = {spec.kind: spec for spec in specs}
        publication = Publication()
        try:
            self._surroundings.calls.make_directory(self.path)
            with opened(self.path, f"{VENDOR}.", self._surroundings) as files:
                for class_ in CLASSES:
                    old = _OldNames(held, None if removable is None else _of_class(class_, removable))
                    _bring(files, class_, wanted.get(kind(class_)), old, publication)
                if publication.written or publication.removed:
                    files.sync()
        except OSError as error:
            raise CdiDirectoryError(str(self.path), error.strerror or str(error)) from error
        return publication


@dataclass(frozen=True, slots=True)
class _OldNames:
    """What is known of the names of one class that are not wanted any more."""

    held: Collection[str] | None
    removable: Collection[str] | None


def _of_class(class_: str, names: Collection[str]) -> frozenset[str]:
    parts = (name.partition("=") for name in names)
    return frozenset(name for named, _, name in parts if named == class_)


def _bring(files: AtomicFiles, class_: str, wanted: CdiSpec | None, old: _OldNames, publication: Publication) -> None:
    """Writes or removes the file of a class, or leaves it alone."""
    name = file_name(class_)
    found = files.read(name)
    previous = _previous(found, name, publication)
    content = with_old_names(previous, wanted, old.held, old.removable)
    if content is None:
        if previous is not None:
            files.remove(name)
            publication.removed.append(name)
        return
    wanted_names = {device.name for device in wanted.devices} if wanted is not None else set()
    old_names = (device.name for device in content.devices if device.name not in wanted_names)
    publication.old_names.extend(f"{class_}={old_name}" for old_name in old_names)
    text = content.to_json()
    if found != Found(text, is_readable=True):
        files.write(name, text)
        publication.written.append(name)


def _previous(found: Found | None, name: str, publication: Publication) -> CdiSpec | None:
    """The specification that is there; None, with a note, if it is none."""
    if found is None:
        return None
    if found.text is None:
        publication.notes.append(f"{name} is no file with text that can be read; names that it had are lost")
        return None
    try:
        return parse_spec(found.text, name)
    except CdiSpecError as error:
        publication.notes.append(f"names that only this file had are lost: {error}")
        return None
