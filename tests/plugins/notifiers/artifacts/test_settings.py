"""The settings of the store: which are refused, and in which words."""

import pytest
from pydantic import ValidationError
from tests.cases import cases

from muster_plugins.notifiers.artifacts.settings import ArtifactSettings


@cases(
    "section",
    [
        {},
        {"url": "s3://bucket"},
        {"url": "gs://bucket/some/prefix"},
        {"url": "file:///var/lib/muster/artifacts"},
        {"url": "s3://bucket", "endpoint": "https://minio.example.com:9000"},
        {"url": "s3://bucket", "endpoint": "http://127.0.0.1:9000"},
        {"url": "s3://bucket", "endpoint": "http://minio:9000", "plain_http": True},
    ],
)
def test_a_store_is_taken(section):
    """A bucket with or without a prefix, or a directory."""
    assert ArtifactSettings.model_validate(section)


@cases(
    ("section", "why"),
    [
        ({"url": "ftp://bucket"}, "url must be s3://"),
        ({"url": "s3:///prefix"}, "url must be s3://"),
        ({"url": "file://host/path"}, "url must be s3://"),
        ({"url": "bucket"}, "url must be s3://"),
        ({"url": "s3://key:secret@bucket"}, "without user and options"),
        ({"url": "s3://bucket?region=eu"}, "without user and options"),
        ({"url": "gs://bucket", "endpoint": "https://a"}, "endpoint is for url = s3://"),
        ({"endpoint": "https://a"}, "endpoint is for url = s3://"),
        ({"url": "s3://bucket", "endpoint": "minio:9000"}, "endpoint must be https://"),
        ({"url": "s3://bucket", "endpoint": "https://a:b@c"}, "endpoint must be https://"),
        ({"url": "s3://bucket", "endpoint": "http://minio:9000"}, "anyone on the path can read"),
    ],
)
def test_another_store_is_refused(section, why):
    """Before the first document, with what would be right."""
    with pytest.raises(ValidationError, match=why):
        ArtifactSettings.model_validate(section)
