"""One lab and one gateway over it for each test module that asks for them."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from processes import BINARY, Gateway, Lab  # noqa: E402

# The upstream's own name for the model, so that a test can see that the gateway put it there.
LAB_MODEL = "lab-one"


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
    """`via-chat` goes to the lab as an OpenAI upstream, `via-messages` as an Anthropic one."""
    upstreams = [
        {"name": "lab-chat", "kind": "openai", "base_url": f"{lab.url}/v1"},
        {"name": "lab-messages", "kind": "anthropic", "base_url": lab.url},
    ]
    models = [
        {"name": "via-chat", "routes": [("lab-chat", LAB_MODEL)]},
        {"name": "via-messages", "routes": [("lab-messages", LAB_MODEL)]},
    ]
    with Gateway(folder, upstreams, models) as gateway:
        yield gateway
        assert gateway.alive(), gateway.tail()
