"""Who may see the page."""

import pytest

from tensorfleet.cli.dashboard.access import Access, is_loopback, new_key

KEY = "0123456789abcdef"
ACCESS = Access(KEY, 4321, names=("127.0.0.1",))


def test_keys_are_long_and_differ():
    assert len(new_key()) >= 32 and new_key() != new_key()


@pytest.mark.parametrize("key", [None, "", KEY[:-1], KEY + "0", KEY.upper(), "é" * 16])
def test_a_wrong_key_is_not_known(key):
    assert not ACCESS.knows(key)


def test_the_key_comes_in_a_cookie_or_as_a_bearer():
    assert ACCESS.may_enter({"tensorfleet_4321": KEY}, None)
    assert ACCESS.may_enter({}, f"Bearer {KEY}")
    assert not ACCESS.may_enter({"tensorfleet_1": KEY}, None)
    assert not ACCESS.may_enter({}, KEY)
    assert not ACCESS.may_enter({}, f"Basic {KEY}")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:4321", "localhost:4321", "localhost:9000", "localhost", "[::1]:4321", "10.0.0.7:1"]
)
def test_own_hosts(host):
    assert ACCESS.is_own_host(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:4321",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "[::1",
        "a b",
    ],
)
def test_names_that_may_lead_here_by_rebinding_are_refused(host):
    assert not ACCESS.is_own_host(host)


@pytest.mark.parametrize(
    ("is_own", "headers"),
    [
        (True, {"origin": "http://127.0.0.1:4321"}),
        (True, {"sec-fetch-site": "same-origin"}),
        (True, {"authorization": f"Bearer {KEY}", "origin": "http://evil.example"}),
        (False, {}),
        (False, {"origin": "null"}),
        (False, {"origin": "https://127.0.0.1:4321"}),
        (False, {"origin": "http://127.0.0.1:9999"}),
        (False, {"origin": "http://evil.example", "sec-fetch-site": "same-origin"}),
        (False, {"sec-fetch-site": "same-site"}),
    ],
)
def test_only_the_page_itself_may_post(is_own, headers):
    assert ACCESS.is_own_origin("127.0.0.1:4321", headers) is is_own


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("host", False),
    ],
)
def test_loopback(host, is_own):
    assert is_loopback(host) is is_own
