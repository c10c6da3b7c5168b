"""What libraries import of AutoGraph's compiler."""

import ast

import pytest

import tensorfleet as tf

pyct = tf.python.autograph.pyct


def test_a_library_derives_its_own_rewriting():
    class Shouting(pyct.transformer.Base):
        def visit_Name(self, node):
            return ast.copy_location(ast.Name(node.id.upper() + self.ctx, node.ctx), node)

    assert ast.unparse(Shouting("_").visit(ast.parse("a + b"))) == "A_ + B_"


def test_what_is_missing_says_so_when_it_is_used():
    with pytest.raises(AttributeError, match="no attribute 'parse_entity'; docs/compatibility.md"):
        assert pyct.parser.parse_entity
