"""The plugin `artifacts`: stores reports and raw output in S3, Google Cloud Storage or a directory."""

from typing import TYPE_CHECKING

from muster import Config, hookimpl
from muster.errors import Unavailable
from muster.extras import missing_package
from muster_plugins.notifiers.artifacts.settings import NAME, ArtifactSettings

if TYPE_CHECKING:
    from muster import ActionOutcome, Artifact
    from muster_plugins.notifiers.artifacts.bucket import Bucket


class ArtifactStore:
    """Keeps one client from the first document to the end of the process."""

    def __init__(self) -> None:
        self._bucket: Bucket | None = None

    @hookimpl
    def muster_configure(self, config: Config) -> None:
        config.plugin(NAME, ArtifactSettings)

    @hookimpl
    async def muster_artifacts(self, config: Config, artifacts: "tuple[Artifact, ...]") -> "ActionOutcome | None":
        settings = config.plugin(NAME, ArtifactSettings)
        if settings.url is None:
            return None
        if self._bucket is None:
            self._bucket = _opened(settings.url, settings, config.settings.fleet)
        return await self._bucket.store(artifacts)


def _opened(url: str, settings: ArtifactSettings, fleet: str) -> "Bucket":
    try:
        from muster_plugins.notifiers.artifacts.bucket import Bucket  # noqa: PLC0415  an extra has the library
    except ModuleNotFoundError as error:
        raise Unavailable(missing_package(error) or str(error)) from None
    return Bucket(url, settings, fleet)
