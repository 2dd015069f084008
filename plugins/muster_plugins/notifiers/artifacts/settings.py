"""The settings of the plugin `artifacts`. Credentials are not among them: the store finds them as its own tools do."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from muster import Section
from muster.addresses import LOOPBACK

NAME = "artifacts"

_FORMS = "s3://bucket/prefix, gs://bucket/prefix or file:///directory"


class ArtifactSettings(Section):
    """The table `[plugins.artifacts]`."""

    url: str | None = Field(None, description=f"Where to store: {_FORMS}; unset: nowhere")
    endpoint: str | None = Field(None, description="URL of an S3 service other than that of AWS")
    plain_http: bool = Field(False, description="true: allow http:// to other hosts; anyone on the path can read it")

    @model_validator(mode="after")
    def _can_be_stored_to(self) -> Self:
        if self.url is None:
            return self
        parts = urlsplit(self.url)
        is_bucket = parts.scheme in ("s3", "gs") and parts.netloc != ""
        is_directory = parts.scheme == "file" and parts.netloc == "" and parts.path.startswith("/")
        if not (is_bucket or is_directory) or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(f"url must be {_FORMS}, without user and options")
        return self

    @model_validator(mode="after")
    def _has_a_safe_endpoint(self) -> Self:
        if self.endpoint is None:
            return self
        parts = urlsplit(self.endpoint)
        if not (self.url or "").startswith("s3://"):
            raise ValueError("endpoint is for url = s3://… only")
        if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
            raise ValueError("endpoint must be https://host[:port], without a user")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK and not self.plain_http:
            raise ValueError(
                "endpoint is http://, which anyone on the path can read: use https://, or set plain_http = true"
            )
        return self
