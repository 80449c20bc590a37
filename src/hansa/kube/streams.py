"""Open answers and upgraded connections of an API server, for those who relay them."""

from hansa.kube.http.transport import Stream
from hansa.kube.http.tunnel import CHUNK, Pace, Tunnel, splice, unpaced

__all__ = ["CHUNK", "Pace", "Stream", "Tunnel", "splice", "unpaced"]
