"""The Talk page: its file is opened, edited and kept; every page can add its view to it."""

import pytest
from streamlit.testing.v1 import AppTest
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


def test_a_typed_file_is_there_after_another_page() -> None:
    test = opened("talk")
    test.text_area(key="talk_text").set_value("title = ").run()
    test.switch_page("heads.py").run()
    test.switch_page("talk.py").run()
    assert test.text_area(key="talk_text").value == "title = "
    assert "The end of the file" in said(test)


def test_a_view_becomes_a_scene_with_its_text_and_its_link() -> None:
    test = opened("head", at="L1H2", look="Lines", text="one two", stage="true")
    test.text_input(key="scene_title head").set_value("Mine")
    test.text_input(key="scene_sentence head").set_value("It looks back.")
    button(test, "Add").click().run()
    added = the_talk(test).scenes[-1]
    assert (added.title, added.sentence, added.text) == ("Mine", "It looks back.", "one two")
    assert added.page == "head"
    assert added.parameters == {"at": "L1H2", "look": "Lines", "text": "one two"}
    test.switch_page("talk.py").run()
    assert "Mine" in html(test)
    assert 'title = "Mine"' in test.text_area(key="talk_text").value


def test_scenes_are_added_after_the_last_one_shown() -> None:
    test = opened("attention", at="L1H2")
    test.session_state["talk_scene"] = 2
    for name in ("A", "B"):
        test.text_input(key="scene_title attention").set_value(name)
        test.text_input(key="scene_sentence attention").set_value("S")
        button(test, "Add").click().run()
    assert [scene.title for scene in the_talk(test).scenes[3:5]] == ["A", "B"]


def test_a_scene_without_a_sentence_gets_a_message_and_changes_nothing() -> None:
    test = opened("attention")
    button(test, "Add").click().run()
    assert "has no sentence" in said(test)
    assert "talk" not in test.session_state


def test_a_scene_of_a_talk_shows_no_inputs_of_the_frame() -> None:
    test = opened("attention", scene="true", stage="true")
    assert not test.exception
    assert "Add to talk" not in str(test.sidebar)
