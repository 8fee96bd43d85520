"""Writing files whole, and making folders that collide with nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from suite.errors import StoreError
from suite.store import files


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    files.write_atomic(path, b"old")
    files.write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["run.json"]  # noqa: PTH208 - hidden files are meant too


def test_a_full_disk_keeps_the_old_file_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    files.write_atomic(path, b"old")

    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match=r"cannot write .*run.json \(no space left on device\): free some space"):
        files.write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["run.json"]  # noqa: PTH208


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: really(descriptor, data[:3]))
    files.write_atomic(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_missing_folder_is_a_sentence_not_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no such file or directory\): choose another folder"):
        files.write_atomic(tmp_path / "nowhere" / "run.json", b"")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="a folder that you may write to"):
        files.new_folder(tmp_path, "run")


def test_folders_of_one_second_get_a_suffix(tmp_path: Path) -> None:
    base = tmp_path / "reports"
    made = [files.new_folder(base, "20260102-030405").name for _ in range(3)]
    assert made == ["20260102-030405", "20260102-030405-2", "20260102-030405-3"]


def test_a_file_where_the_report_folder_should_be_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*reports"):
        files.new_folder(tmp_path / "reports", "run")
    with pytest.raises(StoreError, match=r"cannot write .*reports \(file exists\)"):
        files.new_folder(tmp_path, "reports")
