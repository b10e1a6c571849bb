"""The Pile tab: from an empty model and a pile without labels to a sorted folder, by keys, by groups, by two people."""

from __future__ import annotations

import csv
import io
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.browser.conftest import Visit, serving

CLASSES = ("banded", "checked", "ringed", "striped")


@pytest.fixture
def pile(tmp_path, drawn) -> Path:
    """Images of four classes in one folder, named after their class; the page does not know that."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for path in drawn.rglob("*.jpg"):
        if path.name.startswith(CLASSES) and int(path.stem.split("-")[1]) < 6:
            shutil.copy(path, folder)
    return folder


class Labeller:
    """A person who knows what the images show."""

    def __init__(self, person: Visit) -> None:
        self.page = person.page
        self.page.set_default_timeout(60_000)  # images are embedded first
        person.go("pile")

    def asked(self) -> str:
        """The name of the image on the screen, once it is drawn."""
        self.page.wait_for_selector(".stage:not([hidden]) img.asked")
        self.page.wait_for_function("() => document.querySelector('img.asked')?.naturalWidth > 0")
        return self.page.inner_text(".stage .name")

    def labelled(self, count: int) -> None:
        script = "text => document.querySelector('.pile-line')?.textContent.startsWith(text)"
        self.page.wait_for_function(script, arg=f"Labelled {count} of")

    def answer(self) -> tuple[str, str]:
        """Answer with the keyboard alone; return the image, and the way that was taken."""
        name = self.asked()
        truth = Path(name).name.split("-")[0]
        offered = self.page.eval_on_selector_all(".numbered button", "all => all.map(one => one.title.split('/')[1])")
        if offered[:1] == [truth]:
            self.page.keyboard.press("Enter")
            return name, "right"
        if truth in offered:
            self.page.keyboard.press(str(1 + offered.index(truth)))
            return name, "key"
        self.page.keyboard.press("n")
        field = self.page.locator(".stage form [list=labels]")
        field.fill(truth)
        domain = self.page.locator(".stage form [list=domains]")
        if not domain.input_value():
            domain.fill("drawn")
        field.press("Enter")
        return name, "named"


def test_from_dropped_images_to_a_download(tmp_path, pile, visit):
    with serving(tmp_path / "m.hycal") as server:
        person = visit(server.url)
        page, labeller = person.page, Labeller(person)
        person.drop(pile)
        answers = []
        for count in range(1, 10):
            answers.append(labeller.answer())
            labeller.labelled(count)
        ways = [way for _, way in answers]
        assert ways[0] == "named" and "right" in ways
        assert len({name for name, _ in answers}) == 9
        assert "Labelled 9 of 24, estimated accuracy of the rest" in page.inner_text(".pile-line")

        # taken back with U, it is asked about again
        last = answers[-1][0]
        page.keyboard.press("u")
        labeller.labelled(8)
        page.wait_for_function("name => document.querySelector('.stage .name')?.textContent === name", arg=last)
        labeller.answer()
        labeller.labelled(9)

        # put off with Space, another one is there at once
        before = labeller.asked()
        page.keyboard.press("Space")
        page.wait_for_function(
            "name => (document.querySelector('.stage .name')?.textContent ?? name) !== name", arg=before
        )
        labeller.labelled(9)
        assert labeller.asked() != before

        download(page, tmp_path / "pile.zip", sorted(path.name for path in pile.iterdir()))


def download(page, path: Path, names: list[str]) -> None:
    with page.expect_download() as started:
        page.click("a[download]")
    started.value.save_as(path)
    with zipfile.ZipFile(path) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("labels.csv").decode())))
        assert sorted(row["source"].removeprefix("mixed/") for row in rows) == names
        assert {row["file"] for row in rows} | {"labels.csv"} == set(archive.namelist())
    sure = [row for row in rows if row["place"] == "sorted"]
    right = [Path(row["source"]).name.startswith(row["label"]) for row in sure]
    assert len(sure) >= 9 and sum(right) >= 0.8 * len(sure)


def test_a_name_and_enter_are_enough_for_a_new_class(tmp_path, pile, visit):
    with serving(tmp_path / "m.hycal", "--pile", str(pile)) as server:
        for count, name in enumerate(("first", "second"), start=1):  # each by a person who has typed no domain
            person = visit(server.url)
            labeller = Labeller(person)
            labeller.asked()
            if count == 1:
                person.page.click("text=Look for groups")
                group = person.page.locator(".groups > li").first
                group.locator("[list=labels]").fill("third")
                assert "new class mixed/third" in group.inner_text()
            person.page.locator(".stage form [list=labels]").fill(name)
            person.page.keyboard.press("Enter")
            labeller.labelled(count)


def test_two_people_label_a_folder_name_a_group_and_sort_it(tmp_path, pile, visit):
    with serving(tmp_path / "m.hycal", "--pile", str(pile)) as server:
        one, two = visit(server.url), visit(server.url)
        anna, ben = Labeller(one), Labeller(two)
        assert one.page.is_hidden("#pile .zone")
        assert anna.asked() != ben.asked()

        # a group is named by one drag onto a class, another by its form
        page = one.page
        page.click("text=Look for groups")
        page.wait_for_selector(".groups li")
        group = page.locator(".groups > li").first
        members = group.locator(".members button:not(.plain)")
        members.last.click()
        assert members.last.get_attribute("aria-pressed") == "true"
        group.locator("[list=labels]").fill("drawn/first")
        group.locator("button.main").click()
        one.wait_for_facts("1 class")
        page.wait_for_selector(".targets li[data-label='drawn/first']")
        one.wait_for_message("Learned")
        page.click("#toast button[aria-label=Dismiss]")
        page.locator(".groups > li").first.drag_to(page.locator(".targets li"))
        page.click("#toast.shown >> text=Undo")
        one.wait_for_message("Taken back")
        page.click("#undo")
        page.click("dialog .main")
        one.wait_for_facts("nothing learned yet")

        # both label, and never the same image
        seen = {anna: [], ben: []}
        for _ in range(4):
            for who, names in seen.items():
                names.append(who.answer()[0])
                who.page.wait_for_function(
                    "name => (document.querySelector('.stage .name')?.textContent ?? name) !== name", arg=names[-1]
                )
        assert not set(seen[anna]) & set(seen[ben])
        ben.labelled(8)  # the page goes on before the last label is learned
        anna.page.reload()
        anna.labelled(8)
        assert "2 people are labelling" in anna.page.inner_text(".pile-line")

        # Undo of one who was not the last takes back that person's own label
        last = seen[ben][-1]
        anna.answer()
        anna.labelled(9)
        ben.page.keyboard.press("u")
        ben.labelled(8)
        ben.page.wait_for_function("name => document.querySelector('.stage .name')?.textContent === name", arg=last)

        # sorted beside the pile, and back
        before = sorted(path.read_bytes() for path in pile.iterdir())
        page.click("text=Sort into mixed-sorted")
        one.wait_for_message("Sorted into")
        out = tmp_path / "mixed-sorted"
        assert sorted(path.read_bytes() for path in out.rglob("*.jpg")) == before
        assert (out / "hycal-sort.jsonl").is_file()
        page.click("text=Remove the sorted copies")
        one.wait_for_message(f"{out} is removed again")
        assert not out.exists()
        assert sorted(path.read_bytes() for path in pile.iterdir()) == before
