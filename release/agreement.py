"""Where the repository names another version than pyproject.toml does.

Pure functions over texts: the name of a file and what stands in it.
"""

import re
from collections.abc import Iterator, Mapping

TAGGED = re.compile(r"\bmuster-(?:agent|coordinator|acceptance):v?([0-9][\w.-]*)")
NEW_TAG = re.compile(r"\bmuster-(?:agent|coordinator|acceptance)\b.*newTag: \"?v?([0-9][\w.-]*)")
CLOUD_BUILD = re.compile(r"\b_TAG=([\w.-]+)")
VERSION_OF_IMAGES = re.compile(r"^ARG VERSION=(\S*)$")
CHART = re.compile(r"^(?:version|appVersion): ([\d.]+)$")
NAMES_OF_VERSION = (TAGGED, NEW_TAG, CLOUD_BUILD, VERSION_OF_IMAGES, CHART)


def disagreements(version: str, texts: Mapping[str, str]) -> list[str]:
    """What to change where, one sentence for each line that names another version of the images."""
    return [
        f"{path}:{number}: names version {named}, but pyproject.toml says {version}; change one of them"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        for named in _versions_in(line)
        if named != version
    ]


def _versions_in(line: str) -> Iterator[str]:
    for pattern in NAMES_OF_VERSION:
        yield from pattern.findall(line)


def changes(version: str, changelog: str) -> tuple[str, list[str]]:
    """The changelog's section for a version, without its heading, and what is wrong with it."""
    heading = re.search(rf"^## {re.escape(version)}, (.+)\n", changelog, re.MULTILINE)
    if heading is None:
        return "", [f"CHANGELOG.md: has no section '## {version}, DATE'; write what has changed"]
    section = changelog[heading.end() :].split("\n## ", 1)[0].strip() + "\n"
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading[1]):
        return section, [f"CHANGELOG.md: version {version} is '{heading[1]}'; write the date of the release there"]
    return section, []
