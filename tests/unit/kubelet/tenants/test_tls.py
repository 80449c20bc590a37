"""The TLS context of the vn-agent follows its certificate and the tenants."""

import datetime

from hansa.kube import certificates
from hansa.kube.certificates import KeyPair, Subject
from hansa.kubelet.tenants.tls import TenantTls
from hansa.runtime.errors import HansaError

NOW = datetime.datetime.now(datetime.UTC)
CA = certificates.authority("kubernetes", NOW)
ONE, TWO = (certificates.issue(CA, Subject("", names=("127.0.0.1",)), NOW) for _ in range(2))


class Changing:
    """A serving certificate and the CAs of tenants, as they are at each look."""

    def __init__(self, *looks):
        self.looks = list(looks)

    async def read(self):
        if isinstance(found := self.looks[0][0], str):
            raise HansaError(found)
        return found

    def authorities(self):
        return self.looks[0][1]

    async def changed(self, _within):
        self.looks.pop(0)


async def contexts(*looks):
    """How many CAs each context trusts, until the looks end."""
    world, found = Changing(*looks), []
    try:
        async for context in TenantTls(world, world).contexts():
            found.append(len(context.get_ca_certs()))
    except IndexError:
        return found


async def test_a_tenant_that_comes_or_leaves_is_another_context():
    other = certificates.authority("kubernetes", NOW).certificate
    ca = CA.certificate
    assert await contexts((ONE, b""), (ONE, ca), (ONE, ca), (ONE, ca + other), (TWO, ca)) == [0, 1, 2, 1]


async def test_while_a_renewed_certificate_cannot_be_used_the_former_one_is():
    broken = KeyPair(b"nonsense", TWO.key)
    assert await contexts((ONE, b""), ("no file", CA.certificate), (broken, b""), (TWO, b"")) == [0, 1, 0, 0]
