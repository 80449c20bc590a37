"""The files from which images are built."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.M)


def pins(name):
    return dict(PIN.findall((ROOT / "requirements" / name).read_text()))


def test_the_image_has_the_versions_that_are_tested_and_each_with_hashes():
    runtime = pins("runtime.txt")
    assert {"aiohttp", "cryptography", "msgspec", "uvloop"} <= set(runtime)
    assert runtime.items() <= pins("dev.txt").items()
    text = (ROOT / "requirements" / "runtime.txt").read_text()
    for requirement in re.split(r"\n(?=\w)", text):
        assert "--hash=sha256:" in requirement


def test_the_dockerfile_copies_what_its_context_has_and_runs_without_privileges():
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    copied = {line.split()[1] for line in lines if line.startswith("COPY") and "--from" not in line}
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored[0] == "*"
    assert copied == {one.removeprefix("!") for one in ignored[1:]}
    assert lines[-2:] == ["USER 65532:65532", 'ENTRYPOINT ["hansa"]']
