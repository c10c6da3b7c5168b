"""`tf.contrib.predictor`: a SavedModel, or tensors of a session, as a function of numpy arrays."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tensorfleet.api.saved_model import names
from tensorfleet.api.saved_model.loader import load
from tensorfleet.base import logging
from tensorfleet.base.naming import export
from tensorfleet.base.properties import readonly
from tensorfleet.graph.graph import Graph
from tensorfleet.session.session import BaseSession, Session

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike
    from tensorfleet.base.protos import ConfigProto, MetaGraphDef, SignatureDef


@export("contrib.predictor.predictor.Predictor")
class Predictor:
    """Called with a dictionary of arrays, it gives a dictionary of arrays."""

    def __init__(
        self, session: BaseSession, feed_tensors: dict[str, Any], fetch_tensors: dict[str, Any]
    ) -> None:
        self._session = session
        self._feeds, self._fetches = dict(feed_tensors), dict(fetch_tensors)

    graph: Graph = readonly("_session.graph", "The graph of its session.")
    session: BaseSession = readonly("_session", "The session it runs in.")
    feed_tensors = readonly("_feeds", "The tensors that are fed, by the keys of a call.")
    fetch_tensors = readonly("_fetches", "The tensors that are computed, by the keys of a result.")

    def __call__(self, input_dict: dict[str, Any]) -> dict[str, Any]:
        """Computes the outputs; inputs that are left out must have a default in the graph."""
        odd = set(input_dict) - set(self._feeds)
        if odd:
            raise ValueError(f"Got unexpected keys in input_dict: {odd}\nexpected: {set(self._feeds)}")
        fed = {self._feeds[key]: value for key, value in input_dict.items() if value is not None}
        outputs: dict[str, Any] = self._session.run(self._fetches, fed)
        return outputs

    def __repr__(self) -> str:
        return f"Predictor with feed tensors {self._feeds} and fetch_tensors {self._fetches}"


@export("contrib.predictor.from_saved_model")
def from_saved_model(
    export_dir: PathLike,
    signature_def_key: str | None = None,
    signature_def: SignatureDef | None = None,
    input_names: dict[str, str] | None = None,
    output_names: dict[str, str] | None = None,
    tags: str | Collection[str] | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
) -> Predictor:
    """A predictor from a SavedModel: by one of its signatures ("serving_default"), or by names of tensors."""
    _check(signature_def_key, signature_def, input_names, output_names)
    wanted = tags.split(",") if isinstance(tags, str) else tags or [names.SERVING]
    graph = graph or Graph()
    with graph.as_default():
        session = Session(config=config)
        meta = load(session, wanted, export_dir)
    if input_names is None:
        signature = signature_def or _signature(meta, signature_def_key or names.DEFAULT_SIGNATURE)
        input_names = {key: info.name for key, info in signature.inputs.items()}
        output_names = {key: info.name for key, info in signature.outputs.items()}
    assert output_names is not None
    return Predictor(session, _tensors(graph, input_names), _tensors(graph, output_names))


def _check(
    key: str | None,
    signature: SignatureDef | None,
    inputs: dict[str, str] | None,
    outputs: dict[str, str] | None,
) -> None:
    given = [what is not None for what in (key, signature, inputs)]
    if sum(given) > 1:
        raise ValueError(
            "You must specify at most one of signature_def_key OR signature_def OR input_names and output_names."
        )
    if (inputs is None) != (outputs is None):
        raise ValueError("input_names and output_names must both be specified or both be unspecified.")


def _signature(meta: MetaGraphDef, key: str) -> SignatureDef:
    if key in meta.signature_def:
        return meta.signature_def[key]
    available = sorted(k for k in meta.signature_def if not k.startswith("__"))
    logging.info("The SavedModel has these signatures: %s", available)
    raise ValueError(f"Got signature_def_key {key!r}. Available signatures are {available}.")


def _tensors(graph: Graph, names: dict[str, str]) -> dict[str, Any]:
    return {key: graph.get_tensor_by_name(name) for key, name in names.items()}
