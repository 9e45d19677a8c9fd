"""The Talk page: its file is opened, edited and kept; every page can add its view to it."""

import pytest
from streamlit.testing.v1 import AppTest
from support.parts import PARTS
from support.script import ROOT, button, html, opened, said

from mha_viz import talk
from mha_viz.app.widgets import talk_file


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def the_talk(test: AppTest) -> talk.Talk:
    return talk.read(test.session_state["talk"])


def test_the_page_lists_the_scenes_of_the_talk() -> None:
    shown = html(opened("talk"))
    for scene in talk.read(talk_file.bundled()).scenes:
        assert scene.title in shown


def test_an_edited_file_is_the_talk_once_it_is_right() -> None:
    test = opened("talk")
    file = test.text_area(key="talk_text")
    good = file.value.replace("This head looks one token back", "One token <b>back</b>")
    broken = good.replace('link = "next_token"', "")
    file.set_value(broken).run()
    assert "Line 5: scene 1 has no link." in said(test)
    assert "One token" not in html(test)
    assert test.text_area(key="talk_text").value == broken
    test.text_area(key="talk_text").set_value(good).run()
    assert not said(test)
    assert the_talk(test).scenes[2].title == "One token <b>back</b>"
    assert "One token &lt;b&gt;back&lt;/b&gt;" in html(test)
    button(test, "Back to the talk that comes with the app").click().run()
    assert test.text_area(key="talk_text").value == talk_file.bundled()


def test_a_model_that_is_not_on_this_machine_is_named_before_the_talk() -> None:
    test = opened("talk")
    file = test.text_area(key="talk_text")
    file.set_value(file.value.replace("at=L0H1", "at=L0H1&model=nobody/nothing")).run()
    assert "Not on this machine: nobody/nothing." in said(test)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"#" * 300_000, "at most 262,144"), (b'title = "\xff"', "Line 1: this is not UTF-8")],
)
def test_an_opened_file_that_is_no_talk_changes_nothing(content: bytes, message: str) -> None:
    test = opened("talk")
    test.file_uploader(key="talk_upload").set_value(("a.toml", content, "application/toml")).run()
    assert message in said(test)
    assert test.text_area(key="talk_text").value == talk_file.bundled()


def test_a_typed_file_is_there_after_another_page() -> None:
    test = opened("talk")
    test.text_area(key="talk_text").set_value("title = ").run()
    test.switch_page("heads.py").run()
    test.switch_page("talk.py").run()
    assert test.text_area(key="talk_text").value == "title = "
    assert "The end of the file" in said(test)


def test_a_view_becomes_a_scene_with_its_text_its_link_and_the_words_of_its_figure() -> None:
    test = opened("head", at="L1H2", look="Sink", text="one two", stage="true")
    button(test, "Add to talk").click().run()
    added = the_talk(test).scenes[-1]
    assert added.title == "L1 H2, raw"
    assert added.sentence in html(test)
    assert added.text == "one two"
    assert added.page == "head"
    assert added.parameters == {"at": "L1H2", "look": "Sink", "text": "one two"}
    assert "Added as scene 10." in test.success[0].value


def test_the_words_of_an_added_scene_can_be_edited_and_the_scene_taken_back() -> None:
    test = opened("attention", at="L1H2")
    button(test, "Add to talk").click().run()
    drafted = the_talk(test).scenes[-1]
    assert drafted.title == "Attention: L1 H2"
    assert drafted.sentence == "Each row shows what one token looks at"
    test.text_input(key="added_title").set_value("Mine").run()
    test.text_input(key="added_sentence").set_value("It looks back.").run()
    added = the_talk(test).scenes[-1]
    assert (added.title, added.sentence) == ("Mine", "It looks back.")
    test.text_input(key="added_title").set_value("").run()  # a scene needs a title
    assert the_talk(test).scenes[-1] == added
    test.switch_page("talk.py").run()
    assert "Mine" in html(test)
    assert 'title = "Mine"' in test.text_area(key="talk_text").value
    test.switch_page("heads.py").run()
    assert test.text_input(key="added_title").value == "Mine"
    button(test, "Undo").click().run()
    assert the_talk(test) == talk.read(talk_file.bundled())
    assert not test.success


def test_scenes_are_added_after_the_last_one_shown() -> None:
    test = opened("attention", at="L1H2")
    test.session_state["talk_scene"] = 2
    for name in ("A", "B"):
        button(test, "Add to talk").click().run()
        test.text_input(key="added_title").set_value(name).run()
    assert [scene.title for scene in the_talk(test).scenes[3:5]] == ["A", "B"]


@pytest.mark.parametrize("page", PARTS)
def test_every_page_drafts_a_scene_that_fits(page: str) -> None:
    test = opened(page)
    button(test, "Add to talk").click().run()
    assert the_talk(test).scenes[-1].page == page
    assert not test.exception


def test_a_view_is_not_added_while_the_file_is_broken() -> None:
    test = opened("talk")
    test.text_area(key="talk_text").set_value("title = ").run()
    test.switch_page("heads.py").run()
    button(test, "Add to talk").click().run()
    assert "Correct it on the Talk page" in said(test)
    test.switch_page("talk.py").run()
    assert test.text_area(key="talk_text").value == "title = "


def test_a_scene_of_a_talk_shows_no_inputs_of_the_frame() -> None:
    test = opened("attention", scene="true", stage="true")
    assert not test.exception
    assert "Add to talk" not in str(test.sidebar)
