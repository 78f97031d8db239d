"""The UCI digits come from OpenML, through scikit-learn's own code and without a network."""

import gzip
import hashlib
import io
import json
import sys
from typing import Any
from urllib.error import HTTPError, URLError

import numpy as np
import pytest
import sklearn.datasets._openml as openml

from conftest import reference_folder
from mkclust import datasets
from mkclust.datasets import DatasetError, fetch
from mkclust.datasets.fetch import TABLES, fetch_digit, fingerprints

pytestmark = pytest.mark.slow

load: Any = datasets.load

N = 30


class Answer(io.BytesIO):
    """What opening an address returns."""

    def __init__(self, content, packed):
        super().__init__(gzip.compress(content) if packed else content)
        self.packed = packed

    def info(self):
        return {"Content-Encoding": "gzip"} if self.packed else {}


class Server:
    """Answer as OpenML does, from tables in memory."""

    def __init__(self, packed=True):
        self.packed, self.answers, self.n_requests = packed, {}, 0

    def offer(self, number, columns, rows, nominal=()):
        """Offer one table: columns by name, rows of text with the class last."""
        features = []
        for index, name in enumerate(columns):
            features.append(
                {
                    "index": str(index),
                    "name": name,
                    "data_type": "nominal" if name in nominal else "numeric",
                    "is_target": "true" if name == "class" else "false",
                    "is_ignore": "false",
                    "is_row_identifier": "false",
                    "number_of_missing_values": "0",
                }
            )
        kinds = {name: "{" + ",".join(nominal[name]) + "}" for name in nominal}
        lines = [f"@ATTRIBUTE {name} {kinds.get(name, 'REAL')}" for name in columns]
        data = [",".join(row) for row in rows]
        table = "\n".join(["@RELATION mfeat", *lines, "@DATA", *data, ""]).encode()
        file = f"data/v1/download/{number}/mfeat.arff"
        description = {
            "id": str(number),
            "name": "mfeat",
            "version": "1",
            "format": "ARFF",
            "status": "active",
            "description": "Handwritten numerals",
            "url": f"https://www.openml.org/{file}",
            "file_id": str(number),
            "md5_checksum": hashlib.md5(table).hexdigest(),
        }
        quality = [{"name": "NumberOfInstances", "value": str(len(rows))}]
        about = f"api/v1/json/data/{number}"
        self.answers[about] = json.dumps({"data_set_description": description}).encode()
        for kind, content in (
            ("features", {"feature": features}),
            ("qualities", {"quality": quality}),
        ):
            text = json.dumps({f"data_{kind}": content}).encode()
            self.answers[f"api/v1/json/data/{kind}/{number}"] = text
        self.answers[file] = table

    def offer_digits(self, views, y, decimals=8):
        """Offer the three views, the pixels as categories in an order of their own."""
        for name, number in TABLES.items():
            columns = [f"att{i + 1}" for i in range(views[name].shape[1])]
            nominal = {"class": [str(label) for label in np.unique(y)]}
            if name == "pix":
                values = [str(value) for value in np.unique(views["pix"]).astype(int)[::-1]]
                nominal.update(dict.fromkeys(columns, values))
                rows = [[str(int(value)) for value in row] for row in views[name]]
            else:
                rows = [[f"{value:.{decimals}f}" for value in row] for row in views[name]]
            rows = [[*row, str(label)] for row, label in zip(rows, y, strict=True)]
            self.offer(number, [*columns, "class"], rows, nominal)

    def __call__(self, request, *_, **__):
        self.n_requests += 1
        # Some releases ask one host for what others ask of another.
        path = request.full_url.partition("openml.org/")[2]
        if path not in self.answers:
            raise HTTPError(request.full_url, 404, "Not Found", {}, io.BytesIO())
        return Answer(self.answers[path], self.packed)


def refuse(*_, **__):
    raise URLError("no route to host")


@pytest.fixture
def digits():
    """Small tables of the same kind, and their classes."""
    rng = np.random.default_rng(0)
    views = {
        "pix": rng.integers(0, 7, size=(N, 5)).astype(float),
        "fou": np.round(rng.random((N, 3)), 8),
        "mor": np.round(1e4 * rng.random((N, 2)), 8),
    }
    return views, np.repeat(np.arange(1, 11), N // 10)


@pytest.fixture
def server(digits, monkeypatch):
    """A server with these tables in place of the network, whose fingerprints are known."""
    served = Server()
    served.offer_digits(*digits)
    monkeypatch.setattr(openml, "urlopen", served)
    monkeypatch.setattr(openml.time, "sleep", lambda _: None)
    known = {name: (digest,) for name, digest in fingerprints(*digits).items()}
    monkeypatch.setattr(fetch, "FINGERPRINTS", known)
    monkeypatch.delenv("MKCLUST_DATA", raising=False)
    return served


def complaint(tmp_path):
    """Return the one line that fetching raises."""
    with pytest.raises(DatasetError) as caught:
        load("digit", download=True, data_home=tmp_path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("packed", [True, False])
def test_the_digits_are_fetched_as_they_are_served(server, digits, tmp_path, packed):
    server.packed = packed
    views, y = digits
    data = load("UCI digit", download=True, data_home=tmp_path)
    assert (data.name, data.paper, data.caveat) == ("digit", "Digit", "")
    assert tuple(data.views) == data.kernel_names == ("pix", "fou", "mor")
    for name, view in views.items():
        np.testing.assert_array_equal(data.views[name], view)
    np.testing.assert_array_equal(data.y, y)
    assert data.bank == {"widths": (1.0,), "polynomials": (), "linear": None}
    assert data.description.startswith("Handwritten numerals")


def test_a_second_load_needs_no_network(server, tmp_path, monkeypatch):
    first = load("digit", download=True, data_home=tmp_path)
    assert server.n_requests == 12
    monkeypatch.setattr(openml, "urlopen", refuse)
    second = load("digit", download=True, data_home=tmp_path)
    np.testing.assert_array_equal(first.views["mor"], second.views["mor"])


def test_nothing_is_fetched_unless_it_is_asked_for(server):
    with pytest.raises(DatasetError, match="download=True"):
        load("digit")
    assert server.n_requests == 0


def test_neither_fetching_nor_parsing_needs_pandas(server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert load("digit", download=True, data_home=tmp_path).n_samples == N


def test_the_order_of_the_samples_is_kept_and_does_not_matter(server, digits, tmp_path):
    views, y = digits
    order = np.random.default_rng(1).permutation(N)
    server.offer_digits({name: view[order] for name, view in views.items()}, y[order])
    data = load("digit", download=True, data_home=tmp_path)
    np.testing.assert_array_equal(data.views["fou"], views["fou"][order])
    np.testing.assert_array_equal(data.y, y[order])


@pytest.mark.parametrize("name", ["pix", "fou", "mor"])
def test_one_changed_number_is_noticed_and_its_table_named(server, digits, tmp_path, name):
    views, y = digits
    changed = {key: view.copy() for key, view in views.items()}
    changed[name][7, 1] = 3.25 if name != "pix" else (changed[name][7, 1] + 1) % 7
    server.offer_digits(changed, y)
    message = complaint(tmp_path)
    # Pixels come first in the order of the samples: with them the rows of all tables may move.
    assert differing(message)[0] == name
    assert differing(message) == [name] or name == "pix"
    assert "mor [30, 2]" in message


def differing(message):
    """Return the tables that a message says differ."""
    return message.partition("differs in ")[2].partition(" from ")[0].split(", ")


def test_a_class_on_the_wrong_sample_is_noticed(server, digits, tmp_path):
    views, y = digits
    swapped = y.copy()
    swapped[[0, -1]] = y[[-1, 0]]
    server.offer_digits(views, swapped)
    assert differing(complaint(tmp_path)) == ["classes"]


def test_tables_whose_rows_do_not_match_are_refused(server, digits, tmp_path):
    views, y = digits
    number, other = TABLES["mor"], Server()
    other.offer_digits({name: view[::-1] for name, view in views.items()}, y[::-1])
    server.answers |= {path: a for path, a in other.answers.items() if f"/{number}" in path}
    assert "pix and mor have other classes" in complaint(tmp_path)


def test_without_a_network_the_message_says_so_and_names_the_file(server, tmp_path, monkeypatch):
    monkeypatch.setattr(openml, "urlopen", refuse)
    with pytest.warns(UserWarning, match="network error"):
        message = complaint(tmp_path)
    assert "OpenML cannot be reached" in message
    assert "no route to host" in message
    assert "put UCI.mat into the folder that MKCLUST_DATA names" in message


def test_a_torn_answer_is_refused_in_words(server, tmp_path):
    path = next(path for path in server.answers if path.endswith("/14/mfeat.arff"))
    server.answers[path] = server.answers[path][:-40]
    with pytest.warns(RuntimeWarning, match="redownloading"):
        message = complaint(tmp_path)
    assert "OpenML's table 14 (fou) cannot be read" in message
    assert "md5" in message


def test_names_of_the_classes_do_not_matter_to_the_fingerprint(digits):
    views, y = digits
    assert fingerprints(views, y) == fingerprints(views, 100 - y)


# --- real data ---------------------------------------------------------------------------------


@pytest.mark.data
def test_the_recorded_fingerprints_are_those_of_the_public_file(uci_digit):
    views = dict(zip(TABLES, uci_digit[0].values(), strict=True))
    exact = fingerprints(views, uci_digit[1])
    assert {name: known[0] for name, known in fetch.FINGERPRINTS.items()} == exact
    # As Weka writes fractions.
    short = {name: np.floor(view * 1e6 + 0.5) / 1e6 for name, view in views.items()}
    rounded = fingerprints(short, uci_digit[1])
    assert {name: known[-1] for name, known in fetch.FINGERPRINTS.items()} == rounded


@pytest.mark.data
def test_the_public_numbers_pass_through_the_whole_way(uci_digit, monkeypatch, tmp_path):
    reference_folder("MKCLUST_DATA")
    served = Server()
    views = dict(zip(TABLES, uci_digit[0].values(), strict=True))
    served.offer_digits(views, uci_digit[1])
    monkeypatch.setattr(openml, "urlopen", served)
    data = fetch_digit(tmp_path)
    for name, view in views.items():
        np.testing.assert_array_equal(data.views[name], view)
