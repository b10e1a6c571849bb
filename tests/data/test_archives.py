import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from hycal.data.archives import is_archive, unpack
from hycal.errors import HyCalError


def tar(path: Path, *members: tarfile.TarInfo, content: bytes = b"hello") -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as file:
        for member in members:
            if member.isreg():
                member.size = len(content)
            file.addfile(member, io.BytesIO(content) if member.isreg() else None)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = link
    return info


def test_plain_archives_are_unpacked(tmp_path: Path) -> None:
    names = ("a/b.txt", "./c.txt")
    archive = tar(tmp_path / "x.tgz", member("a", tarfile.DIRTYPE), *(member(name) for name in names))
    assert unpack(archive, tmp_path / "out") == 2
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.mkdir("a")
        file.writestr("a/d.txt", "hello")
    assert unpack(tmp_path / "x.zip", tmp_path / "out") == 1
    files = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.txt"))
    assert files == ["a/b.txt", "a/d.txt", "c.txt"]
    assert (tmp_path / "out" / "a" / "b.txt").read_text() == "hello"


@pytest.mark.parametrize(
    "bad",
    [
        member("../evil"),
        member("a/../../evil"),
        member("/tmp/evil"),
        member("a\\..\\evil"),
        member("C:evil"),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("link", tarfile.SYMTYPE, "good"),
        member("link", tarfile.LNKTYPE, "good"),
        member("fifo", tarfile.FIFOTYPE),
        member("device", tarfile.CHRTYPE),
        member("../evil", tarfile.DIRTYPE),
    ],
    ids=lambda info: f"{info.name}-{info.type.decode()}",
)
def test_hostile_members_stop_everything_before_it_begins(bad: tarfile.TarInfo, tmp_path: Path) -> None:
    archive = tar(tmp_path / "x.tar", member("good"), bad)
    with pytest.raises(HyCalError, match="not safe to unpack"):
        unpack(archive, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.tar"]


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_hostile_zip_names(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr("good", "x")
        file.writestr(zipfile.ZipInfo(name), "x")
    with pytest.raises(HyCalError, match="not safe to unpack"):
        unpack(tmp_path / "x.zip", tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_zip_with_a_link(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr(info, "/etc/passwd")
    with pytest.raises(HyCalError, match="link or a device"):
        unpack(tmp_path / "x.zip", tmp_path / "out")


def test_a_link_that_was_there_before_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HyCalError, match="not safe to unpack"):
        unpack(tar(tmp_path / "x.tar", member("a/evil")), tmp_path / "out")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_damaged_archives(tmp_path: Path) -> None:
    archive = tar(tmp_path / "x.tar.gz", member("a"), content=bytes(range(256)) * 400)
    content = archive.read_bytes()
    for broken in (content[: len(content) // 2], b"nonsense"):
        archive.write_bytes(broken)
        with pytest.raises(HyCalError, match="fetch it again"):
            unpack(archive, tmp_path / "out")
    (tmp_path / "x.zip").write_bytes(b"PK nonsense")
    with pytest.raises(HyCalError, match="fetch it again"):
        unpack(tmp_path / "x.zip", tmp_path / "out")


def test_more_than_the_disk_holds_is_refused(tmp_path: Path) -> None:
    huge = tarfile.TarInfo("huge")
    huge.size = 2**60
    (tmp_path / "x.tar").write_bytes(huge.tobuf(tarfile.PAX_FORMAT) + bytes(1024))
    with pytest.raises(HyCalError):
        unpack(tmp_path / "x.tar", tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_file_that_is_there_is_kept_and_one_that_differs_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("a.txt", "from the archive")
    for _ in range(2):
        assert unpack(tmp_path / "a.zip", tmp_path) == 1
    for mine in ("mine", "from the archivE"):
        (tmp_path / "a.txt").write_text(mine)
        with pytest.raises(HyCalError, match="left as it is"):
            unpack(tmp_path / "a.zip", tmp_path)
        assert (tmp_path / "a.txt").read_text() == mine


def test_suffixes() -> None:
    assert is_archive("a.tar.gz") and is_archive("A.ZIP") and not is_archive("labels-idx1-ubyte.gz")
