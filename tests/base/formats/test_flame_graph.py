"""Flame graphs: boxes as wide as their samples, and nothing but text in them."""

import re
from xml.etree import ElementTree

from tensorfleet.base.formats.flame_graph import flame_graph, parsed

_RECT = "{http://www.w3.org/2000/svg}rect"


def test_a_box_is_as_wide_as_its_samples():
    tree = ElementTree.fromstring(flame_graph("main;left 30\nmain;right;deep 70\n", "title"))
    widths = {
        group[0].text.partition(":")[0]: float(group.find(_RECT).get("width"))
        for group in tree
        if group.tag.endswith("}g")
    }
    assert round(widths["left"] / widths["main"], 2) == 0.3
    assert round(widths["deep"] / widths["main"], 2) == 0.7


def test_names_are_text_and_nothing_else():
    picture = flame_graph('<script>alert("x")</script>;b&c 5\n', "<img src=x>")
    assert ElementTree.fromstring(picture) is not None
    assert not re.search("<script|<img", picture) and "&lt;script&gt;" in picture


def test_lines_that_are_no_stacks_are_left_out_and_no_samples_draw_an_empty_picture():
    assert parsed("a;b 3\n\nnonsense\nc x\n") == [(["a", "b"], 3)]
    assert "0 samples" in flame_graph("", "nothing")
