"""One lab and one gateway over it for each test module that asks for them."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import sdk_scene  # noqa: E402
from processes import BINARY, Gateway, Lab  # noqa: E402


def pytest_sessionstart(session):
    if not session.config.option.collectonly and not BINARY.is_file():
        pytest.exit(f"no gateway at {BINARY}: cargo build --profile ci -p turnkeep (or set TURNKEEP_BIN)", returncode=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("e2e")


@pytest.fixture(scope="module")
def lab(folder):
    with Lab(folder) as lab:
        yield lab
        assert lab.alive(), lab.tail()


@pytest.fixture(scope="module")
def gateway(folder, lab):
    """`via-chat` goes to the lab as an OpenAI upstream, `via-responses` as one of its Responses API, and so on."""
    with Gateway(folder, sdk_scene.upstreams(lab.url), sdk_scene.models()) as gateway:
        yield gateway
        assert gateway.alive(), gateway.tail()
