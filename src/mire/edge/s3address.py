"""Where a bucket is: endpoint, region, certificates, and whether its name is part of the host's.

Owns: the rules of AWS clients for these, from settings, environment and profile.
Must not know: credentials, objects.
Keeps: every library that is used gets the same answers.
"""

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from mire.edge.foreign import Place, place_endpoint
from mire.errors import ConfigError, shown
from mire.model.backend import S3Settings

_DEFAULT_REGION = "us-east-1"
_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a bucket is."""

    endpoint: str | None
    """As configured; None is AWS itself."""
    bucket_url: str
    """The endpoint as obstore wants it: with the bucket in the host's name, when it is there."""
    is_virtual: bool
    is_ordered: bool
    """Whether its listings are known to be in the order of keys: AWS promises so, except of directory buckets."""
    region: str
    ca_file: str | None
    place: Place


def address_of(
    settings: S3Settings,
    *,
    environ: Mapping[str, str],
    profile: Callable[[str], str | None],
    profile_region: str | None,
    advice: str,
) -> Address:
    """Where the bucket of some settings is; `profile` looks a name up in the user's AWS configuration."""
    endpoint = (
        settings.endpoint
        or environ.get("AWS_ENDPOINT_URL_S3")
        or environ.get("AWS_ENDPOINT_URL")
        or profile("endpoint_url")
    )
    region = settings.region or profile_region or _DEFAULT_REGION
    base = endpoint or f"https://s3.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"endpoint {shown(place_endpoint(base))} is not an address: write https://host")
    is_virtual = not settings.force_path_style and _can_be_name(settings.bucket, parts.scheme, parts.hostname)
    inside = urlunsplit(parts._replace(netloc=f"{settings.bucket}.{parts.netloc}")) if is_virtual else base
    return Address(
        endpoint=endpoint,
        bucket_url=inside.rstrip("/"),
        is_virtual=is_virtual,
        is_ordered=parts.hostname.endswith(_AWS_HOSTS) and not settings.bucket.endswith("--x-s3"),
        region=region,
        ca_file=settings.ca_file or environ.get("AWS_CA_BUNDLE") or profile("ca_bundle"),
        place=Place(
            name=f"s3://{settings.bucket}",
            bucket=settings.bucket,
            endpoint=place_endpoint(base),
            timeout_ms=settings.request_timeout_ms,
            advice=advice,
        ),
    )


def _can_be_name(bucket: str, scheme: str, host: str) -> bool:
    """Whether the bucket can be a label of the host: not below a number, and a dot would break a certificate."""
    if host == "localhost" or ("." in bucket and scheme == "https"):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False
