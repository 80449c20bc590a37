"""The certificate that a TLS server presents, whoever signed it. Used for examinations; no request is sent."""

import asyncio
import ssl
from datetime import datetime
from urllib.parse import urlsplit

from cryptography import x509

from hansa.kube.errors import Unreachable

HTTPS_PORT = 443


async def certificate_end(url: str, *, server_name: str = "", deadline: float) -> datetime | None:
    """When the certificate of an https URL ends; None if the URL has another scheme."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    doing = f"read the certificate of {url}"
    try:
        async with asyncio.timeout(deadline):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or HTTPS_PORT, ssl=context, server_hostname=server_name or parts.hostname
            )
    except TimeoutError:
        raise Unreachable(f"cannot {doing}: no answer in {deadline:g} s") from None
    except OSError as error:  # also that of TLS
        raise Unreachable(f"cannot {doing}: {error.strerror or error}") from None
    try:
        presented: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(presented).not_valid_after_utc
    except ValueError as error:
        raise Unreachable(f"cannot {doing}: {error}") from None
    finally:
        writer.close()
